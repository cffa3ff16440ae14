"""The tables of a prepared dataset, row by row and with cells as text, and copies of them with fewer rows.

A kept row of CSV or JSON lines has the same bytes as in the original.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from common.plain_json import parse_json
from competitions.preparing.declaration import Content, json_content, table
from competitions.preparing.download import Download, Member

ARCHIVES = (".zip", ".7z", ".tar", ".tar.gz", ".tgz")
_ENCODING = {"encoding": "utf-8", "errors": "surrogateescape"}  # whatever the bytes are, they stay the same

Cells = Sequence[str]
Keep = Callable[[Cells], bool]


class Entry(NamedTuple):
    """A file of a dataset, or of an archive in it."""

    path: str
    """The path in the dataset, such as `public/train.zip`."""
    inner: str
    """The name in that archive; empty for a file that is no archive."""
    member: Member

    @property
    def name(self) -> str:
        """The path with the name in the archive, without the part of the dataset: `train.zip/1.jpg`."""
        outer = self.path.partition("/")[2]
        return f"{outer}/{self.inner}" if self.inner else outer


def entries_of(raw: Download) -> Iterator[Entry]:
    """Every file of both parts of a dataset, those in archives one by one."""
    for part in ("public", "private"):
        for relative, member in raw.tree(part):
            path = f"{part}/{relative}"
            if path.endswith(ARCHIVES):
                inside = raw.view(str(member))
                yield from (Entry(path, name, inside.file(name)) for name in inside.names())
            else:
                yield Entry(path, "", member)


class Table(NamedTuple):
    """A table of a file: all of it, or a list of records in a JSON document."""

    file: TableFile
    list: str
    """The name of the list in the document; empty for the only table of a file."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        return self.file.tables[self.list]

    @property
    def name(self) -> str:
        """The name for messages and for the side that the table is on."""
        return self.file.entry.name

    def rows(self) -> Iterator[Cells]:
        """The rows, each with one text for each column."""
        return self.file.rows(self.list)


class TableFile(ABC):
    """A file with tables."""

    def __init__(self, raw: Download, entry: Entry) -> None:
        self.raw, self.entry = raw, entry

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, Sequence[str]]:
        """The columns of each table by its name."""

    @abstractmethod
    def rows(self, name: str) -> Iterator[Cells]:
        """The rows of a table."""

    @abstractmethod
    def content(self, keep: Mapping[str, Keep]) -> Content:
        """The file with the kept rows of these tables. Other tables stay whole."""

    def open(self) -> IO[bytes]:
        """The bytes of the file."""
        member = self.entry.member
        return self.raw.view(member.archive).container.open(member.name)

    def __iter__(self) -> Iterator[Table]:
        return (Table(self, name) for name in self.tables)


class _Csv(TableFile):
    """A CSV or TSV file."""

    @cached_property
    def _delimiter(self) -> str:
        return "\t" if self.entry.name.endswith(".tsv") else ","

    def _records(self) -> Iterator[tuple[str, list[str]]]:
        """Each record as it is in the file, and its cells; the header is the first."""
        csv.field_size_limit(sys.maxsize)  # masks and spectra are longer than the default
        current = [""]

        def feed() -> Iterator[str]:
            with self.open() as file:
                record = ""
                for line in file:
                    record += line.decode(**_ENCODING)
                    if record.count('"') % 2 == 0:
                        current[0] = record
                        yield record
                        record = ""
                if record:
                    current[0] = record
                    yield record

        for cells in csv.reader(feed(), delimiter=self._delimiter):
            yield current[0], cells

    @cached_property
    def tables(self) -> Mapping[str, Sequence[str]]:
        for _, cells in self._records():
            return {"": [name.removeprefix("\ufeff") for name in cells]} if len(cells) > 1 else {}
        return {}

    def rows(self, name: str) -> Iterator[Cells]:
        width = len(self.tables[name])
        records = self._records()
        next(records)
        return (cells for _, cells in records if len(cells) == width)

    def content(self, keep: Mapping[str, Keep]) -> Content:
        width, kept = len(self.tables[""]), keep[""]

        def pieces() -> Iterator[bytes]:
            records = self._records()
            yield next(records)[0].encode(**_ENCODING)
            for record, cells in records:
                if len(cells) == width and kept(cells):
                    yield record.encode(**_ENCODING)

        return Content(pieces)


class _Objects(TableFile):
    """A file with JSON objects, which are the rows."""

    def _cells(self, name: str, objects: Iterable[Any]) -> Iterator[Cells]:
        columns = self.tables[name]
        return ([_text(value.get(column)) for column in columns] for value in objects)


class _JsonLines(_Objects):
    """A JSON object a line."""

    @cached_property
    def tables(self) -> Mapping[str, Sequence[str]]:
        with self.open() as file:
            first = file.readline()
        try:
            value = parse_json(first.decode())
        except ValueError:
            return {}
        return {"": list(value)} if isinstance(value, dict) else {}

    def _lines(self) -> Iterator[tuple[bytes, Cells]]:
        with self.open() as file:
            for line in file:
                if line.strip():
                    yield line, next(self._cells("", [parse_json(line.decode())]))

    def rows(self, name: str) -> Iterator[Cells]:
        return (cells for _, cells in self._lines())

    def content(self, keep: Mapping[str, Keep]) -> Content:
        return Content(lambda: (line for line, cells in self._lines() if keep[""](cells)))


class _Json(_Objects):
    """A JSON document: a list of objects, or an object with such lists."""

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        value = self._value
        lists = {"": value} if isinstance(value, list) else value if isinstance(value, dict) else {}
        return {
            name: found
            for name, found in lists.items()
            if isinstance(found, list) and found and all(isinstance(each, dict) for each in found)
        }

    @cached_property
    def _value(self) -> Any:
        with self.open() as file:
            return parse_json(file.read().decode())

    @cached_property
    def tables(self) -> Mapping[str, Sequence[str]]:
        return {name: list(dict.fromkeys(key for each in found for key in each)) for name, found in self._lists.items()}

    def rows(self, name: str) -> Iterator[Cells]:
        return self._cells(name, self._lists[name])

    def content(self, keep: Mapping[str, Keep]) -> Content:
        kept = {
            name: [each for each, cells in zip(self._lists[name], self.rows(name), strict=True) if keep[name](cells)]
            for name in keep
        }
        if "" in kept:
            return json_content(kept[""])
        return json_content({**self._value, **kept})


class _Parquet(TableFile):
    """A Parquet table."""

    def _frames(self) -> Iterator[Any]:
        member = self.entry.member
        return self.raw.view(member.archive).read_parquet(member.name)

    @cached_property
    def tables(self) -> Mapping[str, Sequence[str]]:
        for frame in self._frames():
            return {"": [str(name) for name in frame.columns]}
        return {}

    def rows(self, name: str) -> Iterator[Cells]:
        for frame in self._frames():
            yield from zip(*(frame[column].astype(str) for column in frame.columns), strict=True)

    def content(self, keep: Mapping[str, Keep]) -> Content:
        def frames() -> Iterator[Any]:
            for frame in self._frames():
                rows = zip(*(frame[column].astype(str) for column in frame.columns), strict=True)
                yield frame[[keep[""](cells) for cells in rows]]

        return table(frames(), self.entry.name)


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


_KINDS: dict[str, tuple[type[TableFile], ...]] = {
    ".csv": (_Csv,),
    ".tsv": (_Csv,),
    ".txt": (_Csv,),
    ".json": (_Json, _JsonLines),
    ".jsonl": (_JsonLines,),
    ".parquet": (_Parquet,),
}


def table_file(raw: Download, entry: Entry) -> TableFile | None:
    """The file as one with tables; None if it has none."""
    for kind in _KINDS.get(PurePosixPath(entry.name).suffix, ()):
        file = kind(raw, entry)
        with contextlib.suppress(OSError, ValueError):  # it is not what its name says
            if file.tables:
                return file
    return None
