"""Columns of tables as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MANY = 20
"""Columns of floats of a table from which they are one block of a frame."""
WORD = 8
"""Bytes of a word."""
_BITS = 63  # of a number that is not negative


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


def words_of(characters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The 64-bit word, the first byte lowest, at each of n characters that has seven after it: n - 7, of at least 8."""
    return np.lib.stride_tricks.as_strided(characters[:WORD].view("<u8"), (len(characters) - WORD + 1,), (1,))


def ordered(numbers: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """The places of whole numbers in ascending order, equal ones in the order given, and the sorted numbers.

    If a number and its place fit into 64 bits, they are sorted as one, which is faster than `argsort`.

    >>> ordered(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([5, 7, 7]))
    """
    bits = max(len(numbers) - 1, 0).bit_length()
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if (high - low).bit_length() + bits >= _BITS:
        order = np.argsort(numbers, kind="stable")
        return order, numbers[order]
    wide = np.int64 if numbers.dtype.kind == "i" else np.uint64  # a difference may need more bits
    start = np.array(low, wide)
    # Few arrays, and each used again: the system clears every new page first.
    both = np.subtract(numbers, start, dtype=wide).view(np.int64)
    both <<= bits
    order = np.arange(len(numbers))
    both |= order
    both.sort()
    np.bitwise_and(both, (1 << bits) - 1, out=order)
    both >>= bits
    ascending = both.view(wide)
    ascending += start
    return order, ascending.astype(numbers.dtype, copy=False)
