"""A read-only view of a competition's download, independent of its format.

`prepare` reads tables, names and members from the view in the same way for a zip, a directory, or a zip inside a zip on
an object store. A `Member` is a plain value (archive, name, size) that can be sent to any worker and opened there.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import repeat
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import orjson

from common.errors import close_matches
from common.plain_json import parse_json
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import Container, open_container, require_bounded
from competitions.preparing.archives.nested import open_nested, seekable

if TYPE_CHECKING:
    import pandas as pd

    from competitions.tables.columns import Texts

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])
_LONG_DIGITS = 19  # a number with as many digits may not fit 64 bits
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK = 1 << 20
_SMALL_TABLE_BYTES = 1 << 15  # pandas reads tables up to this size as fast


class Member(NamedTuple):
    """A file of the download: the archive that contains it ("" for the download itself), its name there, its size."""

    archive: str
    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.archive}!/{self.name}" if self.archive else self.name


def named_tuples(kind: type[N], *columns: Iterable[Any]) -> Iterator[N]:
    """Named tuples with the values of these columns, as many as the shortest has, created without calls of `kind`.

    >>> list(named_tuples(Member, ["", ""], ["a", "b"], [1, 2]))
    [Member(archive='', name='a', size=1), Member(archive='', name='b', size=2)]
    """
    make: Callable[[type[N], tuple[Any, ...]], N] = tuple.__new__
    return map(make, repeat(kind), zip(*columns, strict=False))


class Download:
    """The files of a download, or of an archive inside it."""

    def __init__(self, container: Container, archive: str = "", root: Download | None = None) -> None:
        self.container = container
        self._archive = archive
        self._outermost = root
        self._nested: dict[str, Download] = {}
        self._openers: dict[str, Callable[[], IO[bytes]]] = {}
        self._most: int | None = None

    def limit(self, most: int) -> None:
        """Refuse archives that expand to more than `most` bytes: this one, and those in it when they are opened.

        Raises `DownloadError` that names the archive and its largest file.
        """
        self._root._most = most
        require_bounded(self._root.container, most)

    @property
    def _root(self) -> Download:
        return self._outermost or self  # an attribute that refers to itself would keep its files open

    @classmethod
    def open(cls, location: str) -> Download:
        """A view of the download at a local path or fsspec URL, which is an archive or a directory."""
        return cls(open_container(location))

    def archive(self, name: str) -> Download:
        """A view of the nested archive `name` (zip, tar, tar.gz, 7z), read in place."""
        if name not in self._nested:
            label = f"{self._archive}!/{name}" if self._archive else name
            self._require(name)
            container = open_nested(self.container, name, label)
            if self._root._most is not None:
                require_bounded(container, self._root._most)
            self._nested[name] = Download(container, label, self._root)
        return self._nested[name]

    def view(self, archive: str) -> Download:
        """The view of the archive in the `archive` field of a `Member`."""
        view = self._root
        for part in filter(None, archive.split("!/")):
            view = view.archive(part)
        return view

    @cached_property
    def _names(self) -> list[str]:
        return sorted(self.container.sizes)

    def names(self, folder: str = "") -> list[str]:
        """Names of all files, or of those below `folder`, sorted by code point."""
        if not folder:
            return self._names
        prefix = folder.rstrip("/") + "/"
        # "0" follows "/" in code point order, so the range between them is the content of the folder.
        return self._names[bisect_left(self._names, prefix) : bisect_left(self._names, prefix[:-1] + "0")]

    def glob(self, pattern: str) -> list[str]:
        """Names that match `pattern`, in which `*` does not match a `/`; sorted by code point."""
        parts = pattern.split("/")
        fixed = "/".join(parts[: next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))])
        pool = self.names(fixed) if fixed and fixed != pattern else self._names
        matches = [re.compile(fnmatch.translate(part)).match for part in parts]
        depth = len(parts)
        return [
            name
            for name in pool
            if name.count("/") == depth - 1
            and all(match(part) for match, part in zip(matches, name.split("/"), strict=True))
        ]

    def folders(self, folder: str = "") -> list[str]:
        """Names of the folders directly below `folder` that contain files, sorted by code point."""
        start = len(folder.rstrip("/")) + 1 if folder else 0
        split_names = (name[start:].partition("/") for name in self.names(folder))
        return sorted({top for top, slash, _ in split_names if slash})

    def __contains__(self, name: str) -> bool:
        return name in self.container.sizes

    def file(self, name: str) -> Member:
        """The file `name`. Raises `DownloadError` if it is missing."""
        size = self.container.sizes.get(name)
        if size is None:
            self._require(name)
        return Member(self._archive, name, size or 0)

    def files(self, names: Iterable[str]) -> list[Member]:
        """The files with these names. For many names, this takes half the time of as many calls of `file`."""
        names = list(names)
        try:
            sizes = list(map(self.container.sizes.__getitem__, names))
        except KeyError:
            return [self.file(name) for name in names]  # this raises the error that names the missing file
        return list(named_tuples(Member, repeat(self._archive), names, sizes))

    def tree(self, folder: str) -> Iterator[tuple[str, Member]]:
        """Every file below `folder` as (path relative to it, member). Raises `DownloadError` if there is none."""
        names = self.names(folder)
        if not names:
            raise DownloadError(f"the download has no files below {folder!r}; is it complete?")
        start = len(folder.rstrip("/")) + 1 if folder else 0
        for name, member in zip(names, self.files(names), strict=True):
            yield name[start:], member

    def each(self, name: str, *values: Iterable[Any], to: str | None = None) -> Iterator[tuple[str, Member]]:
        """Yield (path, file) for each value of a column, or each row of several columns, for files named after ids.

        `name` and `to` are `str.format` patterns: `name` for the file's name in the download, `to` for its path in the
        prepared dataset (by default the same name). The result is for `Tree.copies` and `Tree.archive`:

            out.public.copies(raw.each("train/{}.jpg", test["id"], to="test/{}.jpg"))
            out.public.copies(raw.each("train/{}/{}", test["label"], test["file"], to="test/{1}"))
        """
        columns = [list(column) for column in values]
        if len(set(map(len, columns))) > 1:
            raise ValueError(f"columns of unequal length: {', '.join(str(len(column)) for column in columns)}")
        yield from zip(map((to or name).format, *columns), self.files(map(name.format, *columns)), strict=True)

    def open_file(self, name: str) -> IO[bytes]:
        """A binary stream of `name`."""
        self._require(name)
        return self.container.open(name)

    def read_bytes(self, name: str) -> bytes:
        """All bytes of `name`."""
        with self.open_file(name) as file:
            return file.read()

    def read_text(self, name: str, encoding: str = "utf-8") -> str:
        """The text of `name`. Line endings become newlines, as in Python's text mode."""
        return self.read_bytes(name).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")

    def read_json(self, name: str, encoding: str = "utf-8") -> Any:
        """The JSON value in `name`."""
        content = self.read_bytes(name)
        if encoding == "utf-8" and not has_long_number(content):  # which orjson reads as floats
            with contextlib.suppress(ValueError):  # json accepts more than orjson does, such as NaN
                return orjson.loads(content)
        return parse_json(content.decode(encoding))

    def read_json_lines(self, name: str) -> pd.DataFrame:
        """The table in `name`, one JSON object a line, read by `pandas.read_json`."""
        import pandas as pd

        with self.open_file(name) as file:
            return pd.read_json(file, lines=True)

    def read_csv(self, name: str, *, texts: Texts = "object", **options: Any) -> pd.DataFrame:
        """The table in `name`, read by `pandas.read_csv` with exact ("round_trip") floats and the given `options`.

        ``float_precision=None`` selects pandas' default parser, with which some published files were created.
        With ``texts="arrow"`` columns of text may be Arrow's, which is faster and takes less memory if long texts are
        only passed on.
        """
        import pandas as pd

        options.setdefault("float_precision", "round_trip")
        if options.get("keep_default_na") is True:  # pandas' default
            del options["keep_default_na"]

        rules = None
        if self._size(name) > _SMALL_TABLE_BYTES:
            from competitions.tables import columns

            rules = columns.Rules.of(options)

        with contextlib.ExitStack() as stack:
            file = stack.enter_context(self.open_file(name))
            parsed = columns.read_stream(file, rules, self._size(name)) if rules else None
            if parsed is not None:
                return columns.frame(parsed, texts)
            if rules and file.seekable():
                file.seek(0)
            elif rules:
                file = stack.enter_context(self.open_file(name))
            table: pd.DataFrame = pd.read_csv(file, **options)
            return table

    def read_parquet(self, name: str, columns: list[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the Parquet table in `name`, or some of its columns, in frames of at most a million rows.

        This is for tables that do not fit in memory: pages are only read when they are needed.
        """
        import pyarrow.parquet as pq

        self._require(name)
        if name not in self._openers:
            self._openers[name] = seekable(self.container, name)
        with self._openers[name]() as file:
            # Read-ahead would keep whole row groups in memory, which can be as large as the table.
            table = pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
            for batch in table.iter_batches(1 << 20, columns=columns):
                yield batch.to_pandas()

    def _size(self, name: str) -> int:
        self._require(name)
        return self.container.sizes[name]

    def _require(self, name: str) -> None:
        if name not in self.container.sizes:
            similar = close_matches(PurePosixPath(name).name, (PurePosixPath(n).name for n in self._names[:10_000]))
            where = f" in {self._archive}" if self._archive else ""
            raise DownloadError(f"the download has no file {name!r}{where}; is it complete?{similar}")


def has_long_number(content: bytes) -> bool:
    """Whether the content has 19 consecutive digits. Replacing digits by zeros is ten times as fast as a regex.

    >>> has_long_number(b"[1234567890123456789]"), has_long_number(b"[123456789012345678, 9]")
    (True, False)
    """
    blocks = (content[start : start + _BLOCK + _LONG_DIGITS - 1] for start in range(0, len(content), _BLOCK))
    return any(b"0" * _LONG_DIGITS in block.translate(_DIGITS) for block in blocks)
