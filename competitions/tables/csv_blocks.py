"""Read plain CSV in blocks of rows with Arrow, without holding the GIL.

The result equals that of ``pandas.read_csv`` for the same rows: types, missing values and floats. Columns that are
certainly whole numbers, floats or text are parsed here. pandas parses blocks with any other column, and whole files
with unusual syntax (`UnsupportedCsv`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from competitions.tables.arrays import whole
from competitions.tables.type_inference import infer_column

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_READ_BYTES = 8 << 20
_MAX_ROW_BYTES = 64 << 20  # a row with more bytes is taken for the effect of a stray quote
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BEFORE_QUOTE = np.zeros(256, dtype=bool)
_BEFORE_QUOTE[list(b'\n",')] = True
_AFTER_QUOTE = np.zeros(256, dtype=bool)
_AFTER_QUOTE[list(b'\n",\r')] = True
MAX_HEADER = 1 << 20
"""Bytes of the first line of a table: a line can be as long as the file."""
PART = 1 << 19
"""Bytes that are compared at a time, so that the result stays in the processor's cache."""


class UnsupportedCsv(Exception):
    """The file has syntax for which only pandas' own parser is known to give the right result."""


@dataclass(frozen=True)
class Plan:
    """How to read: names of the columns, which of them are forced to be text, and whether "NA" etc. are missing."""

    columns: tuple[str, ...]
    texts: AbstractSet[str]
    missing: bool

    @classmethod
    def of(cls, columns: Sequence[str], options: Mapping[str, Any]) -> Plan | None:
        """The plan for these options of ``read_csv``; None if the options or columns require pandas itself."""
        texts = options.get("dtype", {})
        if options.keys() - {"float_precision", "dtype", "keep_default_na"} or len(columns) < 2:
            return None
        if options.get("float_precision") != "round_trip" or not isinstance(texts, dict):
            return None
        if any(kind is not str for kind in texts.values()) or not texts.keys() <= set(columns):
            return None
        if texts and any(name.rpartition(".")[2].isdecimal() for name in columns):
            return None  # a name that occurs twice
        return cls(tuple(columns), frozenset(texts), bool(options.get("keep_default_na", True)))


class BlockPiece(NamedTuple):
    """The text of some rows of the block with this number, from 0. `whole` says whether they are all of its rows."""

    text: bytes
    block: int
    whole: bool


def cut(stream: IO[bytes], rows: int, most: int) -> Iterator[BlockPiece]:
    """Yield the text of a CSV without its header, in blocks of `rows` rows (the last one may have fewer).

    A block of more than `most` bytes comes in pieces of about as many.

    Raises `UnsupportedCsv` if the text ends within quotes or a row seems endless because a quote is never closed, or if
    a row is empty or begins with a blank, because pandas skips some of these.
    """
    waiting, row_stops, quotes, header = bytearray(), np.zeros(0, np.int64), 0, True
    number, rows_left = 0, rows  # the number of the block, and how many of its rows have not been read
    while True:
        piece = stream.read(min(_READ_BYTES, most))
        if not piece and waiting and waiting[-1] != _NEWLINE:
            piece = b"\n"
        ends = row_ends(piece, quotes) + len(waiting)
        quotes += piece.count(b'"')
        waiting += piece
        row_stops = np.concatenate([row_stops, ends])
        while len(row_stops) > header and (len(row_stops) - header >= rows_left or row_stops[-1] >= most or not piece):
            start = int(row_stops[0]) if header else 0
            block = row_stops[header : header + rows_left]
            require_plain_rows(waiting, np.concatenate([[0], row_stops[: header + len(block) - 1]]))
            stop = int(block[-1])
            complete = len(block) == rows_left or not piece
            yield BlockPiece(bytes(memoryview(waiting)[start:stop]), number, complete and rows_left == rows)
            number, rows_left = (number + 1, rows) if complete else (number, rows_left - len(block))
            del waiting[:stop]
            row_stops, header = row_stops[header + len(block) :] - stop, False
        if not piece:
            break
        if len(waiting) - (int(row_stops[-1]) if len(row_stops) else 0) > _MAX_ROW_BYTES:
            raise UnsupportedCsv("a row without an end")
    if quotes % 2 or header:
        raise UnsupportedCsv("it has no rows, or ends within quotes")


def require_utf8(text: bytes | bytearray, size: int) -> None:
    """Raise `UnsupportedCsv` unless the first `size` bytes are UTF-8. Arrow's check of cells is slower."""
    if not text.isascii():
        try:
            str(memoryview(text)[:size], "utf-8")
        except UnicodeDecodeError as error:
            raise UnsupportedCsv("not UTF-8") from error


def require_no_mark(text: bytes | bytearray) -> None:
    """Raise `UnsupportedCsv` if a text starts with a byte order mark, which Arrow drops and pandas keeps."""
    if text.startswith(_BYTE_ORDER_MARK):
        raise UnsupportedCsv("a byte order mark")


def require_plain_rows(text: bytes | bytearray, starts: NDArray[np.int64]) -> None:
    """Raise `UnsupportedCsv` if one of the rows, which begin at `starts`, is empty or begins with a blank."""
    first_bytes = np.frombuffer(text, np.uint8)[starts]
    if np.isin(first_bytes, np.frombuffer(b"\n\r \t", np.uint8)).any():
        raise UnsupportedCsv("rows that are empty or begin with a blank")


def has_header(content: bytes) -> bool:
    """Whether the first line is not so long that a table would have millions of columns."""
    return len(content) < MAX_HEADER or any(end in content[:MAX_HEADER] for end in (b"\n", b"\r"))


def row_ends(text: bytes | bytearray, quotes: int = 0) -> NDArray[np.int64]:
    """Where each row of a CSV ends: after each line ending with an even number of quotes before it.

    `quotes` is the number of quotes before the text.
    """
    characters = np.frombuffer(text, np.uint8)
    ends = places_of(characters, _NEWLINE)
    quote_positions = places_of(characters, _QUOTE) if b'"' in text else np.zeros(0, np.int64)
    return ends[(np.searchsorted(quote_positions, ends) + quotes) % 2 == 0] + 1


def parse(text: bytes, plan: Plan) -> dict[str, pa.Array] | None:
    """The columns of a block as arrays of int64, double or string; None if only pandas can infer them.

    Raises `UnsupportedCsv` if pandas might split the text into other rows and fields.
    """
    require_no_mark(text)
    require_plain_quotes(text)
    require_utf8(text, len(text))
    names = [f"{number}" for number in range(len(plan.columns))]
    quoted = b'"' in text
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            csv.ParseOptions(quote_char='"' if quoted else False, newlines_in_values=quoted, ignore_empty_lines=False),
            csv.ConvertOptions(
                check_utf8=False, column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        raise UnsupportedCsv(str(error)) from error
    columns = {}
    for name, values in zip(plan.columns, table.columns, strict=True):
        column = infer_column(whole(values), name in plan.texts, plan.missing)
        if column is None:
            return None
        columns[name] = column
    return columns


def require_plain_quotes(text: bytes | bytearray, size: int | None = None) -> None:
    """Raise `UnsupportedCsv` unless quotes enclose whole fields, and carriage returns outside of quotes end lines.

    The first `size` bytes of the text are checked, by default all.
    """
    characters = np.frombuffer(text, np.uint8, len(text) if size is None else size)
    quotes = np.zeros(0, np.int64)
    if text.find(b"\0", 0, size) >= 0:
        raise UnsupportedCsv("null characters")
    if text.find(b'"', 0, size) >= 0:
        quotes = places_of(characters, _QUOTE)
        opening, closing = quotes[::2], quotes[1::2]
        bytes_before = characters[opening - 1]
        bytes_before[opening == 0] = _NEWLINE
        bytes_after = characters[np.minimum(closing + 1, len(characters) - 1)]
        if not (_BEFORE_QUOTE[bytes_before].all() and _AFTER_QUOTE[bytes_after].all()):
            raise UnsupportedCsv("quotes within fields")
    if text.find(b"\r", 0, size) >= 0:
        returns = places_of(characters, _RETURN)
        returns = returns[np.searchsorted(quotes, returns) % 2 == 0]
        if not (characters[np.minimum(returns + 1, len(characters) - 1)] == _NEWLINE).all():
            raise UnsupportedCsv("lines that end with a carriage return")


def places_of(characters: NDArray[np.uint8], wanted: int) -> NDArray[np.int64]:
    """The positions of a character. Parts are compared one by one, so that results stay in the processor's cache."""
    matches = np.empty(min(PART, len(characters)), dtype=bool)
    positions = []
    for start in range(0, len(characters), PART):
        part = characters[start : start + PART]
        positions.append(np.flatnonzero(np.equal(part, wanted, out=matches[: len(part)])) + start)
    return np.concatenate(positions) if positions else np.zeros(0, np.int64)


def count_of(text: bytes | bytearray, wanted: int, start: int, end: int) -> int:
    """How often a character occurs in `text[start:end]`. For frequent characters this is faster than `text.count`."""
    characters = np.frombuffer(text, np.uint8, end - start, start)
    return sum(
        int(np.count_nonzero(characters[position : position + PART] == wanted))
        for position in range(0, len(characters), PART)
    )


def frame(columns: Mapping[str, pa.Array]) -> pd.DataFrame:
    """A frame of the columns as pandas would have read them."""
    return pd.DataFrame({name: series(column) for name, column in columns.items()})


def series(column: pa.Array) -> pd.Series:
    """A column as pandas would have read it, with NaN for missing text."""
    if not pa.types.is_string(column.type):
        return pd.Series(column.to_numpy(zero_copy_only=False))
    values = column.to_numpy(zero_copy_only=False)
    if column.null_count:
        values[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return pd.Series(values, dtype=object)
