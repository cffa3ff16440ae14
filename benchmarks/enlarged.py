"""Enlarged miniatures: their rows and files are repeated with new ids."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pandas as pd

Rename = Callable[[str, int], str]
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_MAX_ENTRIES = 20_000  # rows and files
_MIN_SERIES_FILES = 5  # a folder with as many files of one extension is a folder of data


class Download(NamedTuple):
    """The content of a download: rows of its tables, number of other files, and unpacked bytes of all files."""

    rows: int
    files: int
    size: int


def repeat(table: pd.DataFrame, names: Collection[str], times: int, rename: Rename) -> pd.DataFrame:
    """The rows, as text, repeated `times` times, with the cells of these columns renamed in all but the first."""
    parts = (
        table.assign(**{name: [rename(cell, number) for cell in table[name]] for name in names})
        for number in range(1, times)
    )
    return pd.concat([table, *parts], ignore_index=True)


def renamings(ids: Collection[str]) -> list[Rename]:
    """Ways to derive new ids: larger numbers if all ids are numbers, otherwise a prefix or a suffix."""
    if all(re.fullmatch(r"\d{1,12}", old_id) for old_id in ids):
        step = max(map(int, ids), default=0) + 1
        return [lambda cell, number: str(int(cell) + number * step)]
    return [lambda cell, number: f"{number}x{cell}", _behind]


def _behind(cell: str, number: int) -> str:
    stem, dot, extension = cell.rpartition(".")
    return f"{stem}x{number}.{extension}" if dot and extension.isalpha() else f"{cell}x{number}"


def downloads(raw: Path, target: Path, size: int) -> Iterator[tuple[Path, Download]]:
    """Yield ways to enlarge a download to about `size` bytes, as zips that are written to `target`; then itself.

    Downloads with many small files or short rows get about `_MAX_ENTRIES` files and rows instead.

    Tables get more rows; files that are named after an id of a table get copies with the new ids. Numbered files of a
    folder that no table names get copies with new numbers. Anything else is not enlarged.
    """
    with zipfile.ZipFile(raw) as archive:
        once = _size(archive)
    times = max(1, min(size // max(once.size, 1), _MAX_ENTRIES // max(once.rows + once.files, 1)))
    for number in range(2):
        if times > 1:
            writer = _Enlarged(raw, times, number)
            enlarged = writer.write(raw.read_bytes(), target)
            if enlarged.rows + enlarged.files > once.rows + once.files:
                yield target, enlarged
    yield raw, once


class _Enlarged:
    """One way to enlarge a download: which of the `renamings` is used."""

    def __init__(self, raw: Path, times: int, number: int) -> None:
        self.times, self.place = times, number
        self.ids: dict[str, set[str]] = {}
        """The ids in each column of ids, by the name of the column."""
        self._collect(raw.read_bytes())
        self.known = {_stem(old_id): name for name, ids in self.ids.items() for old_id in ids}
        self.rename = {name: self._renaming(ids) for name, ids in self.ids.items()}

    def _renaming(self, ids: Collection[str]) -> Rename:
        ways = renamings(ids)
        return ways[min(self.place, len(ways) - 1)]

    def _collect(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".zip"):
                    self._collect(archive.read(info))
                elif (table := _table(info.filename, archive)) is not None:
                    unique = [f"{name}" for name in table if len(table) > 1 and table[name].is_unique]
                    for name in unique[:1]:
                        self.ids.setdefault(name, set()).update(table[name])

    def write(self, data: bytes, target: Path | io.BytesIO) -> Download:
        """Write the enlarged zip, and return its content."""
        rows = files = size = 0
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            series = Counter(_series(info.filename) for info in infos)
            for info in infos:
                name, content = info.filename, archive.read(info)
                if name.endswith(".zip"):
                    nested = io.BytesIO()
                    nested_content = self.write(content, nested)
                    out.writestr(name, nested.getvalue())
                    rows, files = rows + nested_content.rows, files + nested_content.files
                    size += nested_content.size
                elif (table := _table(name, archive)) is not None:
                    larger = self._table(table).to_csv(index=False, sep=_SEPARATORS[PurePosixPath(name).suffix])
                    out.writestr(name, larger)
                    rows, size = rows + len(table) * self.times, size + len(larger)
                else:
                    names = [name, *self._copies(name, series[_series(name)])]
                    for copy_name in names:
                        out.writestr(copy_name, content)
                    files, size = files + len(names), size + len(names) * len(content)
        return Download(rows, files, size)

    def _table(self, table: pd.DataFrame) -> pd.DataFrame:
        keys = [name for name in self.ids if name in table]
        larger = table
        if keys:
            larger = repeat(table, keys[:1], self.times, self.rename[keys[0]])
            for name in keys[1:]:
                larger[name] = repeat(table[[name]], [name], self.times, self.rename[name])[name]
        else:  # for example a table whose rows are named in another file
            larger = repeat(table, [], self.times, _behind)
        return larger

    def _copies(self, path: str, siblings: int) -> list[str]:
        parts = path.split("/")
        for position, part in enumerate(parts):
            if (column := self.known.get(_stem(part))) is not None:
                stem, extension = _stem(part), part[len(_stem(part)) :]
                return [
                    "/".join([*parts[:position], self.rename[column](stem, number) + extension, *parts[position + 1 :]])
                    for number in range(1, self.times)
                ]
        numbers = list(re.finditer(r"\d+", parts[-1]))
        if siblings < _MIN_SERIES_FILES or not numbers:
            return []
        digits, step = numbers[-1], 10 ** max(6, len(numbers[-1][0]))
        head, tail = path[: -len(parts[-1])] + parts[-1][: digits.start()], parts[-1][digits.end() :]
        return [f"{head}{int(digits[0]) + number * step}{tail}" for number in range(1, self.times)]


def _size(archive: zipfile.ZipFile) -> Download:
    rows = files = size = 0
    for info in archive.infolist():
        if info.filename.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(archive.read(info))) as nested:
                nested_content = _size(nested)
            rows, files, size = rows + nested_content.rows, files + nested_content.files, size + nested_content.size
        elif not info.is_dir():
            table = _table(info.filename, archive)
            rows, files = rows + (0 if table is None else len(table)), files + (table is None)
            size += info.file_size
    return Download(rows, files, size)


def _table(name: str, archive: zipfile.ZipFile) -> pd.DataFrame | None:
    separator = _SEPARATORS.get(PurePosixPath(name).suffix)
    if separator is None:
        return None
    try:
        return pd.read_csv(io.BytesIO(archive.read(name)), dtype=str, keep_default_na=False, sep=separator)
    except ValueError:  # for example another encoding
        return None


def _series(path: str) -> tuple[str, str]:
    return str(PurePosixPath(path).parent), PurePosixPath(path).suffix


def _stem(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension.isalnum() and len(extension) <= 4 else name
