"""Columns of tables as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MANY = 20
"""Columns of floats of a table from which they are one block of a frame."""
_MAX_KEY_BITS = 63  # bits of a 64-bit number that is not negative
_MIN_COMPACT_ROWS = 1 << 22  # from this many rows on, an order has 32-bit numbers: less memory, a little more time
_PART_ROWS = 1 << 16  # numbers processed at a time, so that they stay in the processor's cache


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
    """The positions of whole numbers in ascending order, equal ones in the order given, and the sorted numbers.

    If a number and its position fit into 64 bits, they are sorted as one number, which is faster than `argsort`.

    >>> ordered(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([5, 7, 7]))
    """
    keys = _sorted_with_places(numbers)
    if keys is None:
        order = np.argsort(numbers, kind="stable")
        return order, numbers[order]
    combined, bits, start = keys
    order = combined & ((1 << bits) - 1)
    combined >>= bits
    ascending = combined.view(start.dtype)
    ascending += start
    return order, ascending.astype(numbers.dtype, copy=False)


def order_as(numbers: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any] | None:
    """The positions of whole numbers in the order of `wanted`, which ascends; None if these are not the same numbers.

    For millions of numbers, this needs half of the memory of `ordered`, because positions have 32 bits.

    >>> order_as(np.array([7, 5, 9]), np.array([5, 7, 9])), order_as(np.array([7, 5]), np.array([5, 8]))
    (array([1, 0, 2]), None)
    """
    if len(numbers) != len(wanted):
        return None
    keys = _sorted_with_places(numbers)
    if keys is None:
        order, ascending = ordered(numbers)
        return order if np.array_equal(ascending, wanted) else None
    combined, bits, start = keys
    order = np.empty(len(combined), np.int32 if _MIN_COMPACT_ROWS <= len(combined) < 1 << 31 else np.intp)
    for first in range(0, len(combined), _PART_ROWS):
        part = slice(first, first + _PART_ROWS)
        order[part] = combined[part] & ((1 << bits) - 1)
        if not np.array_equal((combined[part] >> bits).view(start.dtype) + start, wanted[part]):
            return None
    return order


def _sorted_with_places(numbers: NDArray[Any]) -> tuple[NDArray[np.int64], int, NDArray[Any]] | None:
    """Sort numbers together with their positions; None if both have too many bits together.

    Returns the differences to the smallest number, each followed by the bits of its position, in ascending order; the
    number of bits of a position; the smallest number.
    """
    bits = max(len(numbers) - 1, 0).bit_length()
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if (high - low).bit_length() + bits >= _MAX_KEY_BITS:
        return None
    difference_type = np.int64 if numbers.dtype.kind == "i" else np.uint64  # a difference may need more bits
    start = np.array(low, difference_type)
    # There is only one array, because the system clears every new page first.
    combined: NDArray[np.int64] = np.subtract(numbers, start, dtype=difference_type).view(np.int64)
    combined <<= bits
    for first in range(0, len(combined), _PART_ROWS):
        part = combined[first : first + _PART_ROWS]
        part |= np.arange(first, first + len(part))
    combined.sort()
    return combined, bits, start
