"""The manifest of a dataset, with one row per prepared file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


BATCH_ROWS = 1 << 15  # rows


class Done(NamedTuple):
    """One row of the manifest."""

    part: str
    path: str
    bytes: int
    hash: str
    md5: str | None
    source: str


Columns = list[list[Any]]
"""Rows of the manifest as columns in the order of `Done`. They are plain JSON, with few objects for many rows."""


def columns_of(rows: Iterable[Done]) -> Columns:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in Done._fields]


def joined(parts: Iterable[Columns]) -> Columns:
    """The rows of all parts, concatenated."""
    columns = columns_of([])
    for part in parts:
        for column, further in zip(columns, part, strict=True):
            column += further
    return columns


def table_of(rows: Columns) -> pa.Table:
    """Rows as an Arrow table, which takes half the memory of lists."""
    import pyarrow as pa

    text = pa.string()
    types = {"part": text, "path": text, "bytes": pa.int64(), "hash": text, "md5": text, "source": text}
    return pa.table(dict(zip(types, rows, strict=True)), pa.schema(types))


def manifest_of(parts: Iterable[pa.Table]) -> pa.Table:
    """The manifest: the rows of all parts, sorted by part and path (by code point)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    together = pa.concat_tables([table_of(columns_of([])), *parts])
    # `Table.sort_by` would start Arrow's query engine for it.
    return together.take(pc.sort_indices(together, sort_keys=[("part", "ascending"), ("path", "ascending")]))


class StoredManifest:
    """The manifest of a committed dataset as its compressed file, some 60 bytes for a file of the dataset.

    Rows are decoded in batches, so that a million rows do not become a million objects.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content

    def rows(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of each file, sorted by part and path."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = pq.ParquetFile(pa.BufferReader(self._content))
        for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
            yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)
