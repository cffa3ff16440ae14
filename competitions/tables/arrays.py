"""Columns of tables as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MANY = 20
"""Columns of floats of a table from which they are one block of a frame."""
_BITS = 63  # of a number that is not negative
_MANY_ROWS = 1 << 22  # rows from which memory counts more than a little time
_PART = 1 << 16  # numbers at a time, which stay in the processor's cache


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array. Unlike Arrow's `combine_chunks`, it does not copy a column that is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def offsets_of(strings: pa.Array) -> NDArray[Any]:
    """Where each of n strings begins in the buffer of characters, and where the last one ends; n + 1 numbers."""
    kind = np.int64 if str(strings.type).startswith("large_") else np.int32
    return np.frombuffer(strings.buffers()[1], kind)[strings.offset : strings.offset + len(strings) + 1]


def text_of(strings: pa.Array) -> memoryview:
    """The bytes of all strings, one after the other, where Arrow has them."""
    data = strings.buffers()[2]
    if data is None or not len(strings):
        return memoryview(b"")
    offsets = offsets_of(strings)
    return memoryview(data)[offsets[0] : offsets[-1]]


def ordered(numbers: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """The places of whole numbers in ascending order, equal ones in the order given, and the sorted numbers.

    If a number and its place fit into 64 bits, they are sorted as one, which is faster than `argsort`.

    >>> ordered(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([5, 7, 7]))
    """
    found = _sorted_with_places(numbers)
    if found is None:
        order = np.argsort(numbers, kind="stable")
        return order, numbers[order]
    both, bits, start = found
    order = both & ((1 << bits) - 1)
    both >>= bits
    ascending = both.view(start.dtype)
    ascending += start
    return order, ascending.astype(numbers.dtype, copy=False)


def order_as(numbers: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any] | None:
    """The places of whole numbers in the order of others, which ascend; None if these are not the same numbers.

    Millions of numbers take half of the memory that `ordered` takes, and so do their places, of 32 bits.

    >>> order_as(np.array([7, 5, 9]), np.array([5, 7, 9])), order_as(np.array([7, 5]), np.array([5, 8]))
    (array([1, 0, 2]), None)
    """
    if len(numbers) != len(wanted):
        return None
    found = _sorted_with_places(numbers)
    if found is None:
        order, ascending = ordered(numbers)
        return order if np.array_equal(ascending, wanted) else None
    both, bits, start = found
    order = np.empty(len(both), np.int32 if _MANY_ROWS <= len(both) < 1 << 31 else np.intp)
    for place in range(0, len(both), _PART):
        part = slice(place, place + _PART)
        order[part] = both[part] & ((1 << bits) - 1)
        if not np.array_equal((both[part] >> bits).view(start.dtype) + start, wanted[part]):
            return None
    return order


def _sorted_with_places(numbers: NDArray[Any]) -> tuple[NDArray[np.int64], int, NDArray[Any]] | None:
    """Sorted numbers without the smallest, each followed by the bits of its place; how many these are; the smallest.

    None if numbers and places have too many bits together.
    """
    bits = max(len(numbers) - 1, 0).bit_length()
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if (high - low).bit_length() + bits >= _BITS:
        return None
    wide = np.int64 if numbers.dtype.kind == "i" else np.uint64  # a difference may need more bits
    start = np.array(low, wide)
    # One array only: the system clears every new page first.
    both: NDArray[np.int64] = np.subtract(numbers, start, dtype=wide).view(np.int64)
    both <<= bits
    for place in range(0, len(both), _PART):
        part = both[place : place + _PART]
        part |= np.arange(place, place + len(part))
    both.sort()
    return both, bits, start
