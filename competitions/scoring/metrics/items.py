"""Rows of several items each, such as ranked guesses, as flat arrays on which metrics work without loops over rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


class Items(NamedTuple):
    """The items of n rows, one row after the other: m values, and the number of items of each row, shape (n,)."""

    values: list[Hashable] | pa.Array
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Collection[Hashable]] | Items) -> Items:
        """The items of these rows in their order."""
        if isinstance(rows, Items):
            return rows
        return cls(list(chain.from_iterable(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The number of the row of each item, shape (m,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def split_items(cells: pa.Array, separator: str | None = None) -> Items:
    """The items of cells of text (without nulls) as Python's `str.split` separates them: by white space by default.

    >>> import pyarrow as pa
    >>> split_items(pa.array(["b a", " c "])).sizes
    array([2, 1])
    """
    import pyarrow.compute as pc

    if separator is not None:
        return _flat(pc.split_pattern(cells, separator))
    trimmed = pc.utf8_trim_whitespace(cells)
    if not pc.all(pc.string_is_ascii(trimmed)).as_py() or pc.any(pc.equal(trimmed, "")).as_py():
        return Items.of([cell.split() for cell in cells.to_pylist()])
    return _flat(pc.ascii_split_whitespace(trimmed))


def _flat(lists: pa.Array) -> Items:
    return Items(lists.flatten(), np.diff(lists.offsets.to_numpy()).astype(np.int64))


def joint_keys(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers for the items of both: equal if, and only if, row and item are equal; ascending with the row.

    >>> joint_keys(Items.of(["xy", "x"]), Items.of(["y", "xx"]))
    (array([0, 1, 2]), array([1, 2, 2]))
    """
    codes, distinct = _factorized(a.values, b.values)
    mine, others = codes[: len(a.values)], codes[len(a.values) :]
    return a.rows * distinct + mine, b.rows * distinct + others


def _factorized(a: list[Hashable] | pa.Array, b: list[Hashable] | pa.Array) -> tuple[NDArray[np.int64], int]:
    """A number from 0 for each distinct value of both, in order of first appearance, and how many there are."""
    import pyarrow as pa

    try:
        arrays = [pa.array(v, type=pa.string()) if isinstance(v, list) else v.cast(pa.string()) for v in (a, b)]
        encoded = pa.concat_arrays(arrays).dictionary_encode()
    except (pa.ArrowException, UnicodeError):  # not text
        codes, distinct = pd.factorize(np.fromiter(chain(a, b), dtype=object, count=len(a) + len(b)))
        return codes.astype(np.int64), len(distinct)
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
