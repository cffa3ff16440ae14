"""The manifest of a dataset, with one row per prepared file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


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
    whole = columns_of([])
    for part in parts:
        for column, more in zip(whole, part, strict=True):
            column += more
    return whole


def manifest_of(parts: Iterable[Columns]) -> pa.Table:
    """The manifest: the rows of all parts, sorted by part and path (by code point)."""
    import pyarrow as pa

    text = pa.string()
    types = {"part": text, "path": text, "bytes": pa.int64(), "hash": text, "md5": text, "source": text}
    return pa.table(dict(zip(types, joined(parts), strict=True)), pa.schema(types)).sort_by(
        [("part", "ascending"), ("path", "ascending")]
    )
