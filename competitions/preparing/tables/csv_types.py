"""Types of the columns of a CSV, inferred block by block and then combined, as pandas does."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pandas as pd


class Types:
    """The type of each column over all blocks, combined as pandas combines the blocks that it infers types in."""

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
        """True if a column has a type in `block` that it had in no earlier one."""
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
    """Rows that pandas' parser infers types over at a time (``low_memory``, the default)."""
    limit = 2**20 // columns
    rows = 1
    while rows * 2 < limit:
        rows *= 2
    return rows
