"""A read-only view of a competition's download, independent of its format.

`prepare` reads tables, names and members from the view in the same way for a zip, a directory, or a zip inside a zip on
an object store. A `Member` is a plain value (archive, name, size) that can be sent to any worker and opened there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import orjson

from common.plain_json import parse_json
from competitions.preparing.archives.nested import seekable
from competitions.preparing.files import Files, Member, named_tuples

if TYPE_CHECKING:
    import pandas as pd

    from competitions.tables.columns import Texts

__all__ = ["Download", "Member", "has_long_number", "named_tuples"]

_LONG_DIGITS = 19  # a number with as many digits may not fit 64 bits
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK = 1 << 20
_SMALL_TABLE_BYTES = 1 << 15  # pandas reads tables up to this size as fast


class Download(Files):
    """The files of a download, or of an archive inside it, and readers of tables, texts and JSON."""

    @cached_property
    def _openers(self) -> dict[str, Callable[[], IO[bytes]]]:
        return {}

    def open_file(self, name: str) -> IO[bytes]:
        """A binary stream of `name`."""
        member = self.file(name)
        return self.view(member.archive).container.open(member.name)

    def stream(self, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield (name, stream) of the files with these names in storage order: one pass over a sequential archive.

        Each stream is valid until the next one is requested.
        """
        names_of: dict[str, dict[str, str]] = {}
        for name in names:
            member = self.file(name)
            names_of.setdefault(member.archive, {})[member.name] = name
        for archive, stored in names_of.items():
            for name, file in self.view(archive).container.stream(stored):
                yield stored[name], file

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

    def read_json_lines(self, name: str, **options: Any) -> pd.DataFrame:
        """The table in `name`, one JSON object a line, read by `pandas.read_json` with the given `options`."""
        import pandas as pd

        with self.open_file(name) as file:
            return pd.read_json(file, lines=True, **options)

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
        if self.file(name).size > _SMALL_TABLE_BYTES:
            from competitions.tables import columns

            rules = columns.Rules.of(options)

        with contextlib.ExitStack() as stack:
            file = stack.enter_context(self.open_file(name))
            parsed = columns.read_stream(file, rules, self.file(name).size) if rules else None
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

        member = self.file(name)
        if name not in self._openers:
            self._openers[name] = seekable(self.view(member.archive).container, member.name)
        with self._openers[name]() as file:
            # Read-ahead would keep whole row groups in memory, which can be as large as the table.
            table = pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
            for batch in table.iter_batches(1 << 20, columns=columns):
                yield batch.to_pandas()


def has_long_number(content: bytes) -> bool:
    """Whether the content has 19 consecutive digits. Replacing digits by zeros is ten times as fast as a regex.

    >>> has_long_number(b"[1234567890123456789]"), has_long_number(b"[123456789012345678, 9]")
    (True, False)
    """
    blocks = (content[start : start + _BLOCK + _LONG_DIGITS - 1] for start in range(0, len(content), _BLOCK))
    return any(b"0" * _LONG_DIGITS in block.translate(_DIGITS) for block in blocks)
