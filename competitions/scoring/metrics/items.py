"""Rows of several items each, such as ranked guesses, as flat arrays on which metrics work without loops over rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.tables.arrays import offsets_of, text_of

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

    def among(self, others: Items) -> Items:
        """Those items that occur in any row of `others`.

        >>> Items.of([["a", "b"], ["c"]]).among(Items.of([["b"]])).sizes
        array([1, 0])
        """
        codes, _ = factorized(self.values, others.values)
        known = np.isin(codes[: len(self.values)], codes[len(self.values) :])
        values = list(compress(self.values, known)) if isinstance(self.values, list) else self.values.filter(known)
        return Items(values, np.bincount(self.rows[known], minlength=len(self.sizes)))


def split_items(cells: pa.Array, separator: str | None = None) -> Items:
    """The items of cells of text (without nulls) as Python's `str.split` separates them: by white space by default.

    >>> import pyarrow as pa
    >>> split_items(pa.array(["b a", " c "])).sizes
    array([2, 1])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if separator is not None:
        return _flat(pc.split_pattern(cells, separator))
    cells = _with_plain_separators(cells)
    trimmed = pc.ascii_trim_whitespace(cells)
    blank = pc.equal(trimmed, "").to_numpy(zero_copy_only=False)
    found = _flat(pc.ascii_split_whitespace(trimmed))
    if not blank.any():
        return found
    kept = pa.array(np.repeat(~blank, found.sizes))  # a blank cell has no items, for Arrow it has one
    return Items(pc.filter(found.values, kept), np.where(blank, 0, found.sizes))


def _with_plain_separators(cells: pa.Array) -> pa.Array:
    """The cells with the same items, between which is only white space that Arrow knows: that of ASCII.

    For Python, the characters 28 to 31 are white space, too, and some beyond ASCII.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    characters = np.frombuffer(text_of(cells), np.uint8)
    # Bytes beyond ASCII and control characters, which smaller than a blank become large ones: line ends and tabs would
    # need no care, but are rare.
    places = np.flatnonzero(characters - np.uint8(ord(" ")) >= 128 - ord(" "))
    if not len(places):
        return cells
    ends = offsets_of(cells)[1:] - offsets_of(cells)[0]
    odd = np.zeros(len(cells), dtype=bool)
    odd[np.searchsorted(ends, places, side="right")] = True
    mask = pa.array(odd)
    plain = [" ".join(cell.split()) for cell in cells.filter(mask).to_pylist()]
    return pc.replace_with_mask(cells, mask, pa.array(plain, cells.type))


def _flat(lists: pa.Array) -> Items:
    return Items(lists.flatten(), np.diff(lists.offsets.to_numpy()).astype(np.int64))


def distinct(values: Sequence[Hashable] | NDArray[Any] | pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """The distinct values in order of first appearance, to parse each of them once, and which of them each value is.

    >>> distinct(["7", "08", "7"])
    (array([0, 1, 0]), ['7', '08'])
    """
    import pyarrow as pa

    if isinstance(values, pa.Array):
        encoded = values.dictionary_encode()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values, dtype=object, count=len(values))
    codes, found = pd.factorize(values, use_na_sentinel=False)
    return codes.astype(np.int64), found.tolist()


def joint_keys(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers for the items of both: equal if, and only if, row and item are equal; ascending with the row.

    >>> joint_keys(Items.of(["xy", "x"]), Items.of(["y", "xx"]))
    (array([0, 1, 2]), array([1, 2, 2]))
    """
    mine, others, _ = _keys(a, b)
    return mine, others


class Known(NamedTuple):
    """Those items of rows that can be an item of others, and perhaps some more: arrays of shape (k,)."""

    places: NDArray[np.intp]
    """where they are among all items"""
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    """numbers as those of `joint_keys`"""


def keys_of_known(a: Items, b: Items) -> tuple[NDArray[np.int64], Known]:
    """The numbers of `joint_keys` for all items of `a`, and for those of `b` that are an item of any row of `a`.

    >>> mine, known = keys_of_known(Items.of(["xy", "x"]), Items.of(["zy", "xx"]))
    >>> mine, known.places, known.keys
    (array([0, 1, 2]), array([1, 2, 3]), array([1, 2, 2]))
    """
    import pyarrow.compute as pc

    texts = [_texts(each.values) for each in (a, b)]
    if texts[0] is None or texts[1] is None:
        mine, others = joint_keys(a, b)
        return mine, Known(np.arange(len(others)), b.rows, others)
    encoded = texts[0].dictionary_encode()
    count = max(len(encoded.dictionary), 1)
    codes = pc.index_in(texts[1], value_set=encoded.dictionary)  # cheaper than numbers for those that are not in `a`
    found = pc.fill_null(codes, -1).to_numpy().astype(np.int64)
    places = np.flatnonzero(found >= 0)
    rows = b.rows[places]
    return a.rows * count + encoded.indices.to_numpy(), Known(places, rows, rows * count + found[places])


def count_distinct(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The number of different items of each row in `a`, in `b` and in both, shape (n,) each.

    >>> count_distinct(Items.of(["xxy", "x"]), Items.of(["yz", "z"]))
    (array([2, 1]), array([2, 1]), array([1, 0]))
    """
    if len(a.sizes) != len(b.sizes):
        raise ValueError(f"{len(a.sizes)} and {len(b.sizes)} rows")
    mine, others, distinct = _keys(a, b)
    mine, others = _different(mine), _different(others)
    either = np.sort(np.concatenate([mine, others]))
    both = either[:-1][either[1:] == either[:-1]]
    ones, twos, shared = (np.bincount(keys // distinct, minlength=len(a.sizes)) for keys in (mine, others, both))
    return ones, twos, shared


def _different(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different keys in ascending order. For millions of them, `np.unique`, which hashes, is ten times slower."""
    ascending = np.sort(keys)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(keys)]]


def _keys(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The numbers of `joint_keys`, and by what to divide them for the row."""
    codes, distinct = factorized(a.values, b.values)
    mine, others = codes[: len(a.values)], codes[len(a.values) :]
    return a.rows * distinct + mine, b.rows * distinct + others, max(distinct, 1)


def factorized(a: list[Hashable] | pa.Array, b: list[Hashable] | pa.Array) -> tuple[NDArray[np.int64], int]:
    """A number from 0 for each distinct value of both, in order of first appearance, and how many there are.

    >>> factorized(["b", "a"], ["a"])
    (array([0, 1, 1]), 2)
    """
    import pyarrow as pa

    texts = [_texts(values) for values in (a, b)]
    if any(text is None for text in texts):
        codes, distinct = pd.factorize(np.fromiter(chain(a, b), dtype=object, count=len(a) + len(b)))
        return codes.astype(np.int64), len(distinct)
    encoded = pa.concat_arrays(texts).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _texts(values: list[Hashable] | pa.Array) -> pa.StringArray | None:
    """The values as an array of text; None if they are something else."""
    import pyarrow as pa

    try:
        return pa.array(values, type=pa.string()) if isinstance(values, list) else values.cast(pa.string())
    except (pa.ArrowException, UnicodeError):
        return None
