"""The rows of a table, of which a column is converted only when it is asked for: most statistics look at a few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd


def records(table: pd.DataFrame) -> list[Mapping[str, Any]]:
    """The rows as mappings from column to value, equal to those of ``table.to_dict("records")``.

    The table must not change as long as they are used.

    >>> [row] = records(pd.DataFrame({"seed": [0], "score": [0.5]}))
    >>> row["seed"], dict(row)
    (0, {'seed': 0, 'score': 0.5})
    """
    columns = _Columns(table)
    return [_Row(columns, place) for place in range(len(table))]


class _Columns(dict[str, list[Any]]):
    """The values of columns, as objects of Python where there is one of the kind."""

    def __init__(self, table: pd.DataFrame) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, name: str) -> list[Any]:
        values = self.table[name].tolist()
        if self.table[name].dtype == object:
            values = [each.item() if isinstance(each, np.generic) else each for each in values]
        self[name] = values
        return values


class _Row(Mapping[str, Any]):
    __slots__ = ("_columns", "_place")

    def __init__(self, columns: _Columns, place: int) -> None:
        self._columns, self._place = columns, place

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return map(str, self._columns.table)

    def __len__(self) -> int:
        return len(self._columns.table.columns)
