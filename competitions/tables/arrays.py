"""Columns of tables as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 20
"""Columns of floats of a table from which they are one block of a frame."""


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array. Unlike Arrow's `combine_chunks`, it does not copy a column that is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
