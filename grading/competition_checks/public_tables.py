"""The public tables as texts: of every format that pandas reads, and the names of the files that were not read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import mimetypes
import tarfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from common.units import counted
from competitions.tables.csv_blocks import has_header

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = "\t,;| "
_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_DOCUMENTS = (".md", ".py", ".pdf", ".html")
"""Suffixes of texts for people, which hold no table. Images, sounds and videos hold none either."""
_MAX_TABLE_BYTES = 256 << 20
"""Bytes of a table that are read; the rows after them are not checked."""
_MAX_JSON_BYTES = 64 << 20
"""JSON and arrays are read whole or not at all."""
_MAX_ALL_BYTES, _MAX_TABLES = 4 << 30, 1_000
"""Of all tables together; those in upper folders come first. A benchmark can have a small table for each row."""
_MAX_NAMED = 5

Opened = Callable[[], IO[bytes]]


def public_tables(folder: Path, leave_out: str, unread: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables below a folder, also those in zip and tar archives, as texts, by their paths.

    Args:
        folder: The public files.
        leave_out: Name of the sample submission.
        unread: Is given the paths of files that may be tables and were not read.
    """
    count = size = 0
    for name, opened in _files(folder):
        plain = PurePosixPath(name).name
        if plain.startswith(("._", leave_out)) or plain.lower().endswith(_DOCUMENTS) or is_media(plain):
            continue
        if count >= _MAX_TABLES or size >= _MAX_ALL_BYTES:
            unread.append(name)
            continue
        count += 1
        try:
            for part, table in _tables(plain.lower(), opened):
                size += int(table.memory_usage().sum()) * 4  # of texts, the references alone are counted
                yield f"{name}/{part}" if part else name, table
        except Exception:  # files that are broken or of another kind raise what their parser likes
            unread.append(name)


def files_named(paths: Iterable[str]) -> str:
    """Paths in a few words: those of a kind that has many are counted.

    >>> files_named(["a.pkl", "b/1.h5", "b/2.h5", "b/3.h5", "b/4.h5", "b/5.h5", "b/6.h5"])
    'a.pkl, 6 files *.h5'
    """
    paths = list(paths)
    kinds = Counter(PurePosixPath(path).suffix for path in paths)
    names = [path for path in paths if kinds[PurePosixPath(path).suffix] <= _MAX_NAMED]
    more = [f"{count} files *{kind}" for kind, count in kinds.items() if count > _MAX_NAMED]
    shown = names if len(names) <= 2 * _MAX_NAMED else [*names[:_MAX_NAMED], f"{len(names) - _MAX_NAMED} others"]
    return ", ".join([*shown, *more])


def not_read(unread: list[str]) -> str:
    """What an `ok` of a check of public tables does not cover; empty if it covers all."""
    return f"not covered: {counted(len(unread), 'file')} not read as tables: {files_named(unread)}" if unread else ""


def is_closed(name: str) -> bool:
    """Whether a file is an archive or compressed, and no zip archive."""
    return name.lower().endswith((*_TARS, *_COMPRESSED, ".7z", ".rar", ".zst"))


def read_texts(content: bytes, separator: str | None = ",") -> pd.DataFrame | None:
    """A delimited table with all cells as texts; None if it is none. Without a separator, the header decides."""
    import pandas as pd

    if not has_header(content):
        return None
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    header = content[:100_000].decode(encoding, "replace").partition("\n")[0]
    separator = separator or next((mark for mark in _SEPARATORS if mark in header), ",")
    if separator == "," and "," not in header:  # a CSV of other countries
        separator = next((mark for mark in ";\t|" if mark in header), ",")
    try:
        with warnings.catch_warnings(action="ignore"):  # of rows that are longer than the header
            return pd.read_csv(
                io.BytesIO(content),
                sep=separator,
                dtype=str,
                keep_default_na=False,
                on_bad_lines="skip",
                index_col=False,
                encoding=encoding,
                encoding_errors="replace",
            )
    except (ValueError, pd.errors.ParserError):
        return None


def _files(folder: Path) -> Iterator[tuple[str, Opened]]:
    """Files and members of archives, those in upper folders first."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(paths, key=lambda path: (len(path.parts), path)):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() == ".zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if not info.is_dir():
                        yield f"{name}/{info.filename}", partial(archive.open, info)
        elif name.lower().endswith(_TARS) and tarfile.is_tarfile(path):
            with tarfile.open(path) as tar:
                for member in tar:
                    if member.isfile():
                        yield f"{name}/{member.name}", partial(_member, tar, member)
        else:
            yield name, partial(_binary, path)


def _binary(path: Path) -> IO[bytes]:
    return path.open("rb")


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None  # it is a file
    return file


def is_media(name: str) -> bool:
    """Whether the name is one of an image, a sound or a video."""
    kind = mimetypes.guess_type(name)[0] or ""
    return name.lower().endswith((".dcm", ".webp")) or kind.startswith(("image/", "audio/", "video/"))


def _tables(name: str, opened: Opened) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables in a file, and their names in it. Raises an exception if it cannot be read."""
    path = PurePosixPath(name)
    if path.suffix in _COMPRESSED:
        with opened() as packed, _COMPRESSED[path.suffix](packed) as file:
            content = file.read(_MAX_TABLE_BYTES)
        yield from _tables(path.stem, partial(io.BytesIO, content))
    elif path.suffix in (".csv", ".tsv", ".txt", ".tab", ".dat", ".data"):
        separator = {".csv": ",", ".tsv": "\t"}.get(path.suffix)
        table = read_texts(_head(opened()), separator)
        if table is None and path.suffix != ".txt":
            raise ValueError("no table")
        if table is not None:
            yield "", table
    elif path.suffix in (".jsonl", ".ndjson"):
        lines = _head(opened()).splitlines()
        if max(map(len, lines), default=0) > _MAX_JSON_BYTES:
            raise ValueError("too large")
        yield "", _texts(list(map(json.loads, lines)))
    elif path.suffix in (".json", ".npy"):
        if len(content := _head(opened())) > _MAX_JSON_BYTES:
            raise ValueError("too large")
        yield from _of_json(json.loads(content)) if path.suffix == ".json" else _of_array(content)
    elif path.suffix in (".parquet", ".pq"):
        with opened() as file:
            yield "", _of_parquet(file)
    else:
        raise ValueError("of another kind")


def _of_json(value: Any) -> Iterator[tuple[str, pd.DataFrame]]:
    """Records, columns, records by key, values by key, or several of these by name."""
    if isinstance(value, list):
        yield "", _texts([row if isinstance(row, dict) else {"value": row} for row in value])
    elif isinstance(value, dict):
        inner = list(value.values())
        if inner and all(isinstance(item, dict) for item in inner):
            yield "", _texts([{"key": key, **item} for key, item in value.items()])  # a row for each key
            rows = {key: item for column in inner for key, item in column.items()}
            if len(rows) > len(value):  # a column for each key, as pandas writes
                yield "", _texts([{"key": key, **{name: value[name].get(key) for name in value}} for key in rows])
        elif all(not isinstance(item, list | dict) for item in inner):
            yield "", _texts([{"key": key, "value": item} for key, item in value.items()])
        else:
            for name, item in value.items():
                if isinstance(item, list | dict):
                    yield from ((f"{name}/{part}".rstrip("/"), table) for part, table in _of_json(item))


def _of_array(content: bytes) -> Iterator[tuple[str, pd.DataFrame]]:
    import numpy as np
    import pandas as pd

    values = np.load(io.BytesIO(content), allow_pickle=False)
    if values.ndim in (1, 2):
        yield "", _plain(pd.DataFrame(values))


def _of_parquet(file: IO[bytes]) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file)
    skipped = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)
    columns = [field.name for field in source.schema_arrow if not any(test(field.type) for test in skipped)]
    batches: list[pa.RecordBatch] = []
    for batch in source.iter_batches(columns=columns):
        batches.append(batch)
        if sum(batch.nbytes for batch in batches) >= _MAX_TABLE_BYTES:
            break
    return _plain(pa.Table.from_batches(batches, batches[0].schema if batches else pa.schema([])).to_pandas())


def _texts(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return _plain(pd.DataFrame(rows))


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """A table with all cells as texts; whole numbers have no decimals."""
    import pandas as pd

    table = table.rename(columns=str).reset_index(drop=table.index.name is None)
    return pd.DataFrame(
        {name: table[name].convert_dtypes().astype(str).where(table[name].notna(), "").astype(object) for name in table}
    )


def _head(file: IO[bytes]) -> bytes:
    """The first lines. Raises `ValueError` if the first one is too long."""
    with file:
        content = file.read(_MAX_TABLE_BYTES)
    return content if len(content) < _MAX_TABLE_BYTES else content[: content.rindex(b"\n")]
