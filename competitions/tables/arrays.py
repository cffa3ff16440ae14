"""Columns of tables as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MANY = 20
"""Columns of floats of a table from which they are one block of a frame."""


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
