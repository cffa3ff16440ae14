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
        """The items that occur in any row of `others`.

        >>> Items.of([["a", "b"], ["c"]]).among(Items.of([["b"]])).sizes
        array([1, 0])
        """
        codes, _ = factorized(self.values, others.values)
        is_known = np.isin(codes[: len(self.values)], codes[len(self.values) :])
        values = (
            list(compress(self.values, is_known)) if isinstance(self.values, list) else self.values.filter(is_known)
        )
        return Items(values, np.bincount(self.rows[is_known], minlength=len(self.sizes)))


def split_items(cells: pa.Array, separator: str | None = None) -> Items:
    """The items of cells of text (without nulls), separated as by Python's `str.split`: by white space by default.

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
    items = _flat(pc.ascii_split_whitespace(trimmed))
    if not blank.any():
        return items
    has_items = pa.array(np.repeat(~blank, items.sizes))  # a blank cell has no items, but one for Arrow
    return Items(pc.filter(items.values, has_items), np.where(blank, 0, items.sizes))


def _with_plain_separators(cells: pa.Array) -> pa.Array:
    """The cells with the same items, separated only by white space that Arrow knows: that of ASCII.

    For Python, the characters 28 to 31, and some beyond ASCII, are white space as well.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    characters = np.frombuffer(text_of(cells), np.uint8)
    # Finds bytes beyond ASCII and control characters: the difference of smaller bytes wraps around to a large one. Line
    # ends and tabs need not be replaced, but they are rare.
    positions = np.flatnonzero(characters - np.uint8(ord(" ")) >= 128 - ord(" "))
    if not len(positions):
        return cells
    ends = offsets_of(cells)[1:] - offsets_of(cells)[0]
    is_unusual = np.zeros(len(cells), dtype=bool)
    is_unusual[np.searchsorted(ends, positions, side="right")] = True
    mask = pa.array(is_unusual)
    joined_by_blanks = [" ".join(cell.split()) for cell in cells.filter(mask).to_pylist()]
    return pc.replace_with_mask(cells, mask, pa.array(joined_by_blanks, cells.type))


def _flat(lists: pa.Array) -> Items:
    return Items(lists.flatten(), np.diff(lists.offsets.to_numpy()).astype(np.int64))


def distinct(values: Sequence[Hashable] | NDArray[Any] | pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """For each value the index of its distinct value, and the distinct values in order of first appearance.

    >>> distinct(["7", "08", "7"])
    (array([0, 1, 0]), ['7', '08'])
    """
    import pyarrow as pa

    if isinstance(values, pa.Array):
        encoded = values.dictionary_encode()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values, dtype=object, count=len(values))
    codes, uniques = pd.factorize(values, use_na_sentinel=False)
    return codes.astype(np.int64), uniques.tolist()


def joint_keys(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers for the items of both, which are equal if, and only if, row and item are equal, and ascend with the row.

    >>> joint_keys(Items.of(["xy", "x"]), Items.of(["y", "xx"]))
    (array([0, 1, 2]), array([1, 2, 2]))
    """
    a_keys, b_keys, _ = _keys(a, b)
    return a_keys, b_keys


class Known(NamedTuple):
    """The items of rows that can be an item of other rows, and perhaps some more: arrays of shape (k,)."""

    places: NDArray[np.intp]
    """positions among all items"""
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    """numbers as in `joint_keys`"""


def keys_of_known(a: Items, b: Items) -> tuple[NDArray[np.int64], Known]:
    """The numbers of `joint_keys` for all items of `a`, and for those of `b` that are an item of any row of `a`.

    >>> a_keys, known = keys_of_known(Items.of(["xy", "x"]), Items.of(["zy", "xx"]))
    >>> a_keys, known.places, known.keys
    (array([0, 1, 2]), array([1, 2, 3]), array([1, 2, 2]))
    """
    import pyarrow.compute as pc

    texts = [_texts(items.values) for items in (a, b)]
    if texts[0] is None or texts[1] is None:
        a_keys, b_keys = joint_keys(a, b)
        return a_keys, Known(np.arange(len(b_keys)), b.rows, b_keys)
    encoded = texts[0].dictionary_encode()
    count = max(len(encoded.dictionary), 1)
    codes = pc.index_in(texts[1], value_set=encoded.dictionary)  # cheaper than numbering items that are not in `a`
    numbers = pc.fill_null(codes, -1).to_numpy().astype(np.int64)
    positions = np.flatnonzero(numbers >= 0)
    rows = b.rows[positions]
    known = Known(positions, rows, rows * count + numbers[positions])
    return a.rows * count + encoded.indices.to_numpy(), known


def count_distinct(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The number of different items of each row in `a`, in `b` and in both, shape (n,) each.

    >>> count_distinct(Items.of(["xxy", "x"]), Items.of(["yz", "z"]))
    (array([2, 1]), array([2, 1]), array([1, 0]))
    """
    if len(a.sizes) != len(b.sizes):
        raise ValueError(f"{len(a.sizes)} and {len(b.sizes)} rows")
    a_keys, b_keys, distinct = _keys(a, b)
    a_keys, b_keys = _different(a_keys), _different(b_keys)
    either = np.sort(np.concatenate([a_keys, b_keys]))
    shared_keys = either[:-1][either[1:] == either[:-1]]
    all_keys = a_keys, b_keys, shared_keys
    in_a, in_b, in_both = (np.bincount(keys // distinct, minlength=len(a.sizes)) for keys in all_keys)
    return in_a, in_b, in_both


def _different(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct keys in ascending order. For millions of keys, `np.unique`, which hashes, is ten times slower."""
    ascending = np.sort(keys)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(keys)]]


def _keys(a: Items, b: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The numbers of `joint_keys`, and the divisor that gives their rows."""
    codes, distinct = factorized(a.values, b.values)
    a_codes, b_codes = codes[: len(a.values)], codes[len(a.values) :]
    return a.rows * distinct + a_codes, b.rows * distinct + b_codes, max(distinct, 1)


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
