"""The tables and the other files of a download."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from common import plain_json
from competitions.errors import DownloadError
from competitions.preparing.archives.names import ARCHIVE_SUFFIXES
from competitions.preparing.coco import labelled_images
from competitions.proposals.texts import make_alike, read_rows
from competitions.tables.csv_blocks import has_header, row_ends

if TYPE_CHECKING:
    import pandas as pd

    from competitions.preparing.download import Download

MANY = 3
"""Columns up to which they are listed in the code."""
_READERS = {".csv": "", ".tsv": ', sep="\\t"', ".json": "", ".jsonl": ""}
_TRAIN, _TEST = re.compile("train", re.IGNORECASE), re.compile(r"(?:^|[^a-z])test|[a-z]test\d*\.", re.IGNORECASE)
_MOST_BYTES = 1 << 28  # read of a table; a JSON file is read as a whole or not at all
_MOST_ROWS = 1_000_000  # read of a table; the number of further rows is estimated
_MOST_TABLES = {0: 20, 1: 4}  # tables in a folder, by its depth: more of them are data of rows, not tables of rows

Form = Literal["text", "records", "lines", "images", "folders"]
"""Text with separators, a list of records in JSON, records in lines, COCO's metadata of images, or files in folders
that are named after classes."""


@dataclass(frozen=True)
class Table:
    """A table of the download: its name, the archive in the download that contains it ("": none), its first rows."""

    name: str
    archive: str
    rows: pd.DataFrame
    count: int
    """The number of its rows; an estimate for more than a million."""
    form: Form = "text"
    texts: list[str] = field(default_factory=list)
    """Columns that are read as they are written, because pandas would write them in another way."""

    @property
    def base(self) -> str:
        """Its name without folders, in lower case."""
        return PurePosixPath(self.name).name.lower()

    @property
    def path(self) -> str:
        """Its name with folders and archive."""
        return f"{self.archive}/{self.name}"

    @property
    def part(self) -> str:
        """Whose rows it has by its name, see `part_of`."""
        return part_of(self.path)

    @property
    def label(self) -> str:
        """The column of labels, if its format has one."""
        return "category_id" if self.form == "images" and "category_id" in self.columns else ""

    @property
    def reader(self) -> str:
        """The expression that reads it in prepare.py."""
        raw, name = source(self.archive), quoted(self.name)
        if self.form == "records":
            return f"pd.DataFrame({raw}.read_json({name}))"
        if self.form == "lines":
            return f"{raw}.read_json_lines({name}, dtype=False, convert_dates=False)"
        if self.form == "images":
            return f"labelled_images({raw}.read_json({name}))"
        if self.form == "folders":
            rows = f'path.split("/")[:-3:-1] for path in {raw}.glob({name})'
            return f"pd.DataFrame(({rows}), columns={quoted(self.columns)})"
        suffix = PurePosixPath(self.name).suffix.lower()
        return f"{raw}.read_csv({name}{_READERS[suffix]}{self._converters})"

    @property
    def _converters(self) -> str:
        """The option that reads some columns as they are written."""
        if len(self.texts) > MANY:
            return f", converters=dict.fromkeys({quoted(self.texts)}, str)"
        names = ", ".join(f"{quoted(name)}: str" for name in self.texts)
        return f", converters={{{names}}}" if names else ""

    def writer(self, part: str, name: str = "") -> str:
        """The line that makes `part` of it public under its own name, or another one."""
        name = name or self.name
        if self.form == "records":
            return f'out.public.json({quoted(name)}, {part}.to_dict("records"))'
        if self.form == "lines":
            return f'out.public.text({quoted(name)}, {part}.to_json(orient="records", lines=True))'
        if self.form == "images":
            name = str(PurePosixPath(name).with_suffix(".csv"))
        return f"out.public.table({quoted(name)}, {part})"

    @property
    def columns(self) -> list[str]:
        """Names of its columns."""
        return [str(name) for name in self.rows.columns]


@dataclass(frozen=True)
class Layout:
    """What a download consists of. `files` are all that are no table, by archive."""

    tables: list[Table]
    files: dict[str, list[str]]

    @property
    def unread(self) -> str:
        """Says which files have names of tables and were not read, "" if none."""
        names = [
            name
            for files in self.files.values()
            for name in files
            if "/" not in name and PurePosixPath(name).suffix.lower() in (".csv", ".tsv")
        ]
        return f"; {', '.join(names[:4])} could not be read: is it UTF-8?" if names else ""


def part_of(path: str) -> Literal["train", "test", ""]:
    """Whose rows a table or file belongs to by its name, with folders and archive; "" if that does not say.

    >>> [part_of(path) for path in ("train.csv", "test_labels.csv", "labels.csv", "contest/1.jpg", "train/a_test.csv")]
    ['train', 'test', 'train', '', 'train']
    """
    if _TRAIN.search(path):
        return "train"
    return "test" if _TEST.search(path) else "train" if "label" in path.lower() else ""


def source(archive: str) -> str:
    """The expression for the download, or for an archive in it."""
    return f"raw.archive({quoted(archive)})" if archive else "raw"


def quoted(value: object) -> str:
    r"""A literal of Python for a name, a list of names, or a cell; for texts also one of YAML. It has one line.

    >>> quoted("a"), quoted(["b", "c"]), quoted("d\u2028"), quoted(float("inf"))
    ('"a"', '["b", "c"]', '"d\\u2028"', 'float("inf")')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    text = plain_json.dumps(str(value), ensure_ascii=False)
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def in_pattern(name: str) -> str:
    """A name as a part of a pattern of `str.format`.

    >>> in_pattern("{raw}").format()
    '{raw}'
    """
    return name.replace("{", "{{").replace("}", "}}")


def read_layout(raw: Download) -> Layout:
    """The tables and files of the download, and of the archives directly in it."""
    layout = _read_all(raw)
    make_alike(layout.tables)
    return layout


def _read_all(raw: Download) -> Layout:
    tables: list[Table] = []
    files: dict[str, list[str]] = {}
    names = raw.names()
    if len(names) == 1 and names[0].lower().endswith(ARCHIVE_SUFFIXES):
        return _prefixed(_read_all(raw.archive(names[0])), names[0])
    top = [name for name in names if not name.lower().endswith(ARCHIVE_SUFFIXES)]
    _read(raw, "", top, tables, files)
    for name in names:
        if not name.lower().endswith(ARCHIVE_SUFFIXES):
            continue
        try:
            inner = raw.archive(name)
            inside = inner.names()
        except DownloadError:  # no archive in spite of its name
            files.setdefault("", []).append(name)
            continue
        stem = name.removesuffix(".zip")
        if len(inside) == 1 and PurePosixPath(stem).suffix.lower() in _READERS and stem not in top:
            _read(raw, "", [stem], tables, files)  # raw.read_csv finds a table that was zipped
        else:
            _read(inner, name, inside, tables, files)
    return Layout(tables, files)


def _prefixed(layout: Layout, archive: str) -> Layout:
    """The layout of a download that consists of one archive."""
    tables = [replace(table, archive=table.archive or archive) for table in layout.tables]
    return Layout(tables, {inner or archive: names for inner, names in layout.files.items()})


def _read(raw: Download, archive: str, names: list[str], tables: list[Table], files: dict[str, list[str]]) -> None:
    folders = Counter(
        str(PurePosixPath(name).parent) for name in names if PurePosixPath(name).suffix.lower() in _READERS
    )
    for name in names:
        path = PurePosixPath(name)
        few = folders[str(path.parent)] <= _MOST_TABLES.get(len(path.parts) - 1, 1)
        table = _table(raw, archive, name) if few and path.suffix.lower() in _READERS else None
        if table is not None:
            tables.append(table)
        else:
            files.setdefault(archive, []).append(name)


def _table(raw: Download, archive: str, name: str) -> Table | None:
    if name.lower().endswith((".json", ".jsonl")):
        return _of_json(raw, archive, name)
    separator = "\t" if name.lower().endswith(".tsv") else ","
    try:
        head, whole = _head(raw, name)
        rows, texts = read_rows(head, sep=separator, nrows=_MOST_ROWS, float_precision="round_trip")
    except ValueError:  # pandas' errors: text in another encoding, lines of unequal length
        return None
    count = len(rows)
    if count == _MOST_ROWS or not whole:
        some = rows.head(1000)
        count = max(count, round(raw.file(name).size * len(some) / len(some.to_csv(index=False))))
    return Table(name, archive, rows, count, texts=texts)


def _head(raw: Download, name: str) -> tuple[bytes, bool]:
    """The first rows of a CSV, and whether these are all. Raises `ValueError` if it is one long line."""
    with raw.open_file(name) as file:
        head = file.read(_MOST_BYTES)
    if not has_header(head):
        raise ValueError(f"{name} has no line that can be a header")
    if len(head) < _MOST_BYTES:
        return head, True
    return head[: max(row_ends(head), default=0)], False


def _of_json(raw: Download, archive: str, name: str) -> Table | None:
    """A list of records, records in lines, or the metadata of images as COCO has them."""
    import pandas as pd

    form: Form
    if raw.file(name).size > _MOST_BYTES:
        return None
    try:
        value = raw.read_json(name)
    except ValueError:
        try:
            rows, form = raw.read_json_lines(name, dtype=False, convert_dates=False), "lines"
        except ValueError:
            return None
    else:
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            rows, form = pd.DataFrame(value), "records"
        elif _is_coco(value):
            rows, form = labelled_images(value), "images"
        else:
            return None
    nested = [column for column in rows if rows[column].map(lambda cell: isinstance(cell, (list, dict))).any()]
    for column in nested:
        rows[column] = rows[column].map(repr)  # texts can be compared
    return Table(name, archive, rows, len(rows), form)


def _is_coco(value: Any) -> bool:
    """Whether a JSON value has lists of images and, perhaps, of annotations to them."""
    if not isinstance(value, dict) or not isinstance(images := value.get("images"), list) or not images:
        return False
    needed = {"image_id", "category_id"}
    annotations = value.get("annotations") or []
    return "id" in images[0] and all(isinstance(each, dict) and needed <= each.keys() for each in annotations[:10])
