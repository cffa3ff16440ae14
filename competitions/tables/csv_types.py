"""Types of the columns of a CSV, inferred per block and then combined as in pandas."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pandas as pd


class Types:
    """The type of each column over all blocks, combined by the rules of pandas."""

    def __init__(self) -> None:
        self._examples: dict[str, dict[Any, pd.Series]] = defaultdict(dict)

    def copy(self) -> Types:
        """An independent copy."""
        copied = Types()
        copied._examples.update({name: dict(found) for name, found in self._examples.items()})
        return copied

    @property
    def mixed(self) -> bool:
        """Whether a column has several types."""
        return any(len(found) > 1 for found in self._examples.values())

    def learn(self, block: pd.DataFrame) -> bool:
        """Add the types of a block. Returns whether a column has a type that it had in no earlier block."""
        new = {name: values[:1] for name, values in block.items() if values.dtype not in self._examples[str(name)]}
        for name, example in new.items():
            self._examples[str(name)][example.dtype] = example
        return bool(new)

    def cast(self, block: pd.DataFrame) -> pd.DataFrame:
        """`block` with the types that its columns have in the whole table."""
        mixed = {name: list(found.values()) for name, found in self._examples.items() if len(found) > 1}
        columns = {name: pd.concat([block[name], *found]).iloc[: len(block)] for name, found in mixed.items()}
        return block.assign(**columns)


def inference_rows(columns: int) -> int:
    """Number of rows for which pandas' parser infers types at a time (``low_memory``, the default)."""
    limit = 2**20 // columns
    rows = 1
    while rows * 2 < limit:
        rows *= 2
    return rows
