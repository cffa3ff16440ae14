"""Declarations of prepared datasets: `prepare` returns one, and `storage` writes its files.

Nothing is written here. A declaration has two trees, public and private. A tree maps each path to the operation that
creates the file. Operations that only read the download (copies, archives of members, derived files) are plain values,
so they can be divided into chunks and executed by any worker. Tables and other content computed by `prepare` are
written by the process that ran it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from common import names
from competitions.errors import BadCompetition, DownloadError
from competitions.preparing import json_text
from competitions.preparing.download import Download, Member, named_tuples
from competitions.tables import csv_text

if TYPE_CHECKING:
    import pandas as pd

Params = Mapping[str, Any]
"""Counts, dates and names of a competition: the `params` of its competition.yaml, with overrides applied."""

ArchiveKind = Literal["zip", "tar", "7z"]


@dataclass(frozen=True)
class Content:
    """Bytes computed by `prepare`, as a function that yields them in pieces. Each call starts from the beginning."""

    pieces: Callable[[], Iterable[bytes]]
    among: Pass | None = None
    """The pass that computes this content and others, if there is one: these are written together."""
    number: int = 0
    """The number of this content in the pass."""


@dataclass(frozen=True, eq=False)
class Pass:
    """Several contents that are computed together, such as the parts of one large file, which is read once.

    Attributes:
        run: yields the number of a content, from 0, and its next bytes. Each call starts from the beginning.
    """

    run: Callable[[], Iterable[tuple[int, bytes]]]

    def contents(self, count: int) -> list[Content]:
        """The contents. Each of them can also be written alone."""

        def one(number: int) -> Iterator[bytes]:
            return (data for owner, data in self.run() if owner == number)

        return [Content(partial(one, number), self, number) for number in range(count)]


class Copy(NamedTuple):  # a frozen dataclass takes three times as long to create, and there can be a million
    """A file that has the bytes of one member of the download."""

    member: Member


@dataclass(frozen=True)
class Archive:
    """An archive of members and contents. `folders` adds empty directory entries."""

    kind: ArchiveKind
    entries: tuple[tuple[str, Member | Content], ...]
    stored: bool = False
    folders: tuple[str, ...] = ()

    @property
    def portable(self) -> bool:
        """Whether it consists of members only, so that any worker can build it."""
        return all(isinstance(entry, Member) for _, entry in self.entries)


@dataclass(frozen=True)
class Derived:
    """A file created on a worker by `function` of prepare.py: `function(download, *arguments)` yields its bytes.

    `size` is the number of bytes that it reads, if that is known: small files are then created together.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    size: int = 0


Operation = Content | Copy | Archive | Derived


class Tree:
    """The public or the private half of a dataset: maps paths to the operations that create the files."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.operations: dict[str, Operation] = {}

    def _add(self, path: str, operation: Operation) -> None:
        if path in self.operations:
            raise BadCompetition(f"{self.part}/{path} is declared twice")
        if why := names.problem(path):
            refusal = f"{names.shown(path)} cannot be a file of {self.part}/: it {why}"
            if isinstance(operation, Copy):  # the name is most likely that of the member
                raise DownloadError(
                    f"{refusal}; download it again if it is damaged, else rename or omit it in prepare.py"
                )
            raise BadCompetition(f"{refusal}; rename or omit it")
        self.operations[path] = operation

    def table(self, path: str, frames: pd.DataFrame | Iterable[pd.DataFrame], **options: Any) -> None:
        """Declare a table: CSV as by ``to_csv(index=False)``, tab-separated for ``.tsv``, Parquet for ``.parquet``.

        `frames` is one frame, or an iterable of frames to concatenate if the table does not fit in memory (an iterator
        can be written only once). `options` are passed to pandas' writer.
        """
        self._add(path, table(frames, path, **options))

    def copy(self, path: str, member: Member) -> None:
        """Declare an unchanged copy of `member`."""
        self._add(path, Copy(member))

    def copies(self, files: Mapping[str, Member] | Iterable[tuple[str, Member]]) -> None:
        """Declare several copies: path -> member."""
        pairs = list(files.items() if isinstance(files, Mapping) else files)
        paths = [path for path, _ in pairs]
        copies = named_tuples(Copy, (member for _, member in pairs))
        declared: dict[str, Operation] = dict(zip(paths, copies, strict=True))
        if len(declared) == len(pairs) and names.all_usual(paths) and self.operations.keys().isdisjoint(declared):
            self.operations.update(declared)
            return
        for path, member in pairs:
            self._add(path, Copy(member))

    def copy_tree(self, path: str, download: Download, folder: str) -> None:
        """Declare copies of all files below `folder` of the download to the same paths below `path` ("": the top)."""
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
        """Declare an archive. The suffix of `path` decides its kind: .zip, .7z, .tar or .tar.gz (not compressed).

        Entries keep the given order, except in tar archives, which are sorted by name to be reproducible. `stored`
        leaves zip members uncompressed.
        """
        kind: ArchiveKind = "7z" if path.endswith(".7z") else "tar" if path.endswith((".tar", ".tar.gz")) else "zip"
        pairs = tuple(entries.items() if isinstance(entries, Mapping) else entries)
        members = {name for name, _ in pairs}
        if len(members) != len(pairs):
            raise BadCompetition(f"{self.part}/{path} would contain a name twice")
        for name, _ in () if names.all_usual(list(members)) else pairs:
            if why := names.problem(name):
                raise BadCompetition(
                    f"{names.shown(name)} cannot be a member of {self.part}/{path}: it {why}; rename it"
                )
        self._add(path, Archive(kind, pairs, stored, tuple(folders)))

    def json(self, path: str, value: Any, **options: Any) -> None:
        """Declare a JSON file: ``json.dumps(value, **options)`` without a final newline."""
        self._add(path, json_content(value, **options))

    def text(self, path: str, text: str | Iterable[str]) -> None:
        """Declare a UTF-8 text file from one string or from pieces (an iterator can be written only once)."""
        self._add(path, text_content(text))

    def content(self, path: str, content: Content) -> None:
        """Declare a file with content from `table`, `json_content` or `text_content`, which an archive may share."""
        self._add(path, content)

    def derived(self, path: str, function: Callable[..., Iterator[bytes]], *arguments: Any, size: int = 0) -> None:
        """Declare a file created on a worker by `function(download, *arguments)`, a top-level function of prepare.py.

        `arguments` must be plain JSON values. Use it for files that require reading much of the download. State the
        `size` in bytes of what is read if there are many small files.
        """
        self._add(path, Derived(function.__name__, arguments, size))


@dataclass
class LeftOut:
    """Training data that an edition leaves out because the test set has the same data, for the dataset's record."""

    issue: str
    """The known issue that this fixes."""
    what: str
    """What is counted, in the plural, such as "images"."""
    count: int
    """How many are left out. If a table is written as a stream, the number is complete after that."""
    of: int
    """How many there were before."""


@dataclass
class Preparation:
    """The declaration of a prepared dataset, which `prepare` returns."""

    public: Tree = field(default_factory=lambda: Tree("public"))
    private: Tree = field(default_factory=lambda: Tree("private"))
    left_out: list[LeftOut] = field(default_factory=list)

    def operations(self) -> Iterator[tuple[str, str, Operation]]:
        """Yield (part, path, operation) of every file in the order of declaration."""
        for tree in (self.public, self.private):
            for path, operation in tree.operations.items():
                yield tree.part, path, operation


def table(frames: pd.DataFrame | Iterable[pd.DataFrame], path: str = ".csv", **options: Any) -> Content:
    """A table as content; see `Tree.table`. The suffix of `path` decides the format."""
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
    """``json.dumps(value, **options)`` as content, written in pieces of bounded size."""
    return Content(lambda: _blocks(json_text.pieces(value, json.JSONEncoder(**options))))


def text_content(text: str | Iterable[str]) -> Content:
    """UTF-8 text as content."""
    return Content(lambda: [text.encode()] if isinstance(text, str) else _blocks(text))


class _Sink(io.RawIOBase):
    """Collects the output of the Parquet writer, so that it can be passed on one row group at a time."""

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
        # The first frame decides the types, because a column of a later one may have missing values only.
        rows = pa.Table.from_pandas(frame, schema=writer.schema if writer else None, preserve_index=False)
        writer = writer or pq.ParquetWriter(sink, rows.schema, **options)
        writer.write_table(rows)
        yield sink.take()
    if writer is None:
        raise BadCompetition("a Parquet table needs at least one frame")
    writer.close()
    yield sink.take()


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
