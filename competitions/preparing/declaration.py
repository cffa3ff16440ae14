"""The prepared dataset as a declaration: what `prepare` returns and `storage` materialises.

Nothing is written here. A declaration holds two trees, public and private; a tree maps paths to what the file is made
of. Work that reads only the download (copies, archives of members, derived files) is made of plain values, so that it
can be cut into chunks and done by any worker; tables and other content computed by `prepare` are written by the
process that ran it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from competitions.errors import BadCompetition
from competitions.preparing.download import Download, Member
from competitions.preparing.tables import csv_text

if TYPE_CHECKING:
    import pandas as pd

Params = Mapping[str, Any]
"""Counts, dates and names of a competition by name: `params` of its competition.yaml, or what overrides them."""

ArchiveKind = Literal["zip", "tar", "7z"]


@dataclass(frozen=True)
class Content:
    """Bytes computed by `prepare`: a function that yields them in pieces, from the start on each call."""

    pieces: Callable[[], Iterable[bytes]]


class Copy(NamedTuple):  # of which there may be a million: a frozen dataclass takes three times as long to make
    """The bytes of one member of the download."""

    member: Member


@dataclass(frozen=True)
class Archive:
    """An archive built of members and contents; `folders` adds empty directory entries."""

    kind: ArchiveKind
    entries: tuple[tuple[str, Member | Content], ...]
    stored: bool = False
    folders: tuple[str, ...] = ()

    @property
    def portable(self) -> bool:
        """True if it is made of members only, so that any worker can build it."""
        return all(isinstance(entry, Member) for _, entry in self.entries)


@dataclass(frozen=True)
class Derived:
    """A file made on a worker by `function` of prepare.py: `function(download, *arguments)` yields its bytes."""

    function: str
    arguments: tuple[Any, ...] = ()


Operation = Content | Copy | Archive | Derived


class Tree:
    """One half of the dataset: paths and what their files are made of."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.operations: dict[str, Operation] = {}

    def _add(self, path: str, operation: Operation) -> None:
        if path in self.operations:
            raise BadCompetition(f"{self.part}/{path} is declared twice")
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise BadCompetition(f"{self.part}/{path} is not a plain relative path")
        self.operations[path] = operation

    def table(self, path: str, frames: pd.DataFrame | Iterable[pd.DataFrame], **options: Any) -> None:
        """A table: CSV by ``to_csv(index=False)``, tab-separated for ``.tsv``, Parquet for ``.parquet``.

        `frames` is a frame, or frames written one below the other where the whole would not fit in memory (then they
        can be written once only). `options` go to pandas' writer.
        """
        self._add(path, table(frames, path, **options))

    def copy(self, path: str, member: Member) -> None:
        """The bytes of `member`, unchanged."""
        self._add(path, Copy(member))

    def copies(self, files: Mapping[str, Member] | Iterable[tuple[str, Member]]) -> None:
        """Several copies: path -> member."""
        for path, member in files.items() if isinstance(files, Mapping) else files:
            self._add(path, Copy(member))

    def copy_tree(self, path: str, download: Download, folder: str) -> None:
        """Every file below `folder` of the download, to the same relative place below `path` ("" for the top)."""
        prefix = f"{path}/" if path else ""
        self.copies((prefix + relative, member) for relative, member in download.tree(folder))

    def archive(
        self,
        path: str,
        entries: Mapping[str, Member | Content] | Iterable[tuple[str, Member | Content]],
        *,
        stored: bool = False,
        folders: Iterable[str] = (),
    ) -> None:
        """An archive, its kind by the suffix of `path` (.zip; .tar, .tar.gz written without compression; .7z).

        Entries keep the given order, except in tar archives, which are sorted by name so that their bytes do not
        depend on who builds them. `stored` leaves zip members uncompressed.
        """
        kind: ArchiveKind = "7z" if path.endswith(".7z") else "tar" if path.endswith((".tar", ".tar.gz")) else "zip"
        pairs = tuple(entries.items() if isinstance(entries, Mapping) else entries)
        if len({name for name, _ in pairs}) != len(pairs):
            raise BadCompetition(f"{self.part}/{path} would hold a name twice")
        self._add(path, Archive(kind, pairs, stored, tuple(folders)))

    def json(self, path: str, value: Any, **options: Any) -> None:
        """``json.dumps(value, **options)`` without a final newline."""
        self._add(path, json_content(value, **options))

    def text(self, path: str, text: str | Iterable[str]) -> None:
        """UTF-8 text, whole or in pieces (pieces from an iterator can be written once only)."""
        self._add(path, text_content(text))

    def content(self, path: str, content: Content) -> None:
        """Content made by `table`, `json_content` or `text_content`, e.g. one that is also put in an archive."""
        self._add(path, content)

    def derived(self, path: str, function: Callable[..., Iterator[bytes]], *arguments: Any) -> None:
        """A file made on a worker: `function(download, *arguments)`, a top-level function of this prepare.py.

        `arguments` must be plain JSON values. Use it where making the file reads much of the download.
        """
        self._add(path, Derived(function.__name__, arguments))


@dataclass
class Preparation:
    """The whole prepared dataset."""

    public: Tree = field(default_factory=lambda: Tree("public"))
    private: Tree = field(default_factory=lambda: Tree("private"))

    def operations(self) -> Iterator[tuple[str, str, Operation]]:
        """(part, path, operation) of every file, in the order of declaration."""
        for tree in (self.public, self.private):
            for path, operation in tree.operations.items():
                yield tree.part, path, operation


def table(frames: pd.DataFrame | Iterable[pd.DataFrame], path: str = ".csv", **options: Any) -> Content:
    """A table as content; see `Tree.table`. `path` decides the format by its suffix."""
    import pandas as pd

    if path.endswith(".parquet"):
        return Content(lambda: _parquet(frames, options))
    if path.endswith(".tsv"):
        options.setdefault("sep", "\t")
    options.setdefault("index", False)
    if not isinstance(frames, pd.DataFrame):
        return Content(lambda: csv_text.pieces(frames, options))
    return Content(lambda: csv_text.pieces([frames], options))


def json_content(value: Any, **options: Any) -> Content:
    """``json.dumps(value, **options)`` as content, written in bounded pieces."""
    return Content(lambda: _blocks(_json_pieces(value, json.JSONEncoder(**options))))


def text_content(text: str | Iterable[str]) -> Content:
    """UTF-8 text as content."""
    return Content(lambda: [text.encode()] if isinstance(text, str) else _blocks(text))


class _Sink(io.RawIOBase):
    """Collects what the Parquet writer writes, so that it can be handed on row group by row group."""

    def __init__(self) -> None:
        self.position = 0
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        self.position += len(self.parts[-1])
        return len(self.parts[-1])

    def tell(self) -> int:
        return self.position

    def take(self) -> bytes:
        parts, self.parts = self.parts, []
        return b"".join(parts)


def _parquet(frames: pd.DataFrame | Iterable[pd.DataFrame], options: dict[str, Any]) -> Iterator[bytes]:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = _Sink()
    writer: pq.ParquetWriter | None = None
    for frame in [frames] if isinstance(frames, pd.DataFrame) else frames:
        # The first frame decides the types: a later one may be all missing in a column.
        rows = pa.Table.from_pandas(frame, schema=writer.schema if writer else None, preserve_index=False)
        writer = writer or pq.ParquetWriter(sink, rows.schema, **options)
        writer.write_table(rows)
        yield sink.take()
    if writer is None:
        raise BadCompetition("a Parquet table needs at least one frame")
    writer.close()
    yield sink.take()


def _json_pieces(value: Any, encoder: json.JSONEncoder) -> Iterator[str]:
    if not isinstance(value, list) or not value or encoder.indent is not None:
        yield from encoder.iterencode(value)
        return
    # Element by element: whole values go through the encoder in C, many times faster than iterencode.
    for index, element in enumerate(value):
        yield (encoder.item_separator if index else "[") + encoder.encode(element)
    yield "]"


def _blocks(pieces: Iterable[str], size: int = 1 << 20) -> Iterator[bytes]:
    block: list[str] = []
    length = 0
    for piece in pieces:
        block.append(piece)
        length += len(piece)
        if length >= size:
            yield "".join(block).encode()
            block, length = [], 0
    yield "".join(block).encode()
