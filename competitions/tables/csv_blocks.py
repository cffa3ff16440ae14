"""Read plain CSV in blocks of rows with Arrow, without holding the GIL.

The result equals that of ``pandas.read_csv`` for the same rows: types, missing values and floats. Columns that are
certainly whole numbers, floats or text are parsed here. pandas parses blocks with any other column, and whole files
with unusual syntax (`UnsupportedCsv`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from competitions.tables.arrays import text_of, whole

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_PIECE = 8 << 20
_LONGEST_ROW = 64 << 20  # a row with more bytes is taken for the effect of a stray quote
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MISSING = ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
MISSING += ["NULL", "NaN", "None", "n/a", "nan", "null"]
"""Texts that pandas reads as missing values, as documented for `read_csv`, besides the empty one."""
NUMERALS = b"0123456789.-+eE"
"""Bytes of numbers in the usual spellings: not `nan`, `1_0` and others."""
_NUMERIC = np.zeros(256, dtype=bool)
_NUMERIC[list(NUMERALS)] = True
_FRACTIONAL = np.zeros(256, dtype=bool)
_FRACTIONAL[list(b".eE")] = True
_BEFORE_QUOTE = np.zeros(256, dtype=bool)
_BEFORE_QUOTE[list(b'\n",')] = True
_AFTER_QUOTE = np.zeros(256, dtype=bool)
_AFTER_QUOTE[list(b'\n",\r')] = True
PART = 1 << 19
"""Bytes that are compared at a time, so that the result stays in the processor's cache."""
WHOLE_DIGITS = 18
"""Whole numbers with at most this many digits fit 64 bits."""
_LONGEST_MISSING = max(map(len, MISSING))
_SAMPLE = 1 << 12  # characters that are inspected first, because most columns of text begin with text
FLOAT_DIGITS = 100
"""Characters of a float from which it is left to pandas."""
_ORDINARY = 16  # characters of a float with at most 15 digits and a point
_WITNESSES = 50  # number of values inspected to decide that a column is text


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


class Piece(NamedTuple):
    """The text of some rows: of the block with this number, from 0, which may have more than these."""

    text: bytes
    block: int
    whole: bool


def cut(stream: IO[bytes], rows: int, most: int) -> Iterator[Piece]:
    """Yield the text of a CSV without its header, in blocks of `rows` rows (the last one may have fewer).

    A block of more than `most` bytes comes in pieces of about as many.

    Raises `UnsupportedCsv` if the text ends within quotes or a row seems endless because a quote is never closed, or if
    a row is empty or begins with a blank, because pandas skips some of these.
    """
    waiting, found, quotes, header = bytearray(), np.zeros(0, np.int64), 0, True
    number, left = 0, rows  # of the block, and how many of its rows are still to come
    while True:
        piece = stream.read(min(_PIECE, most))
        if not piece and waiting and waiting[-1] != _NEWLINE:
            piece = b"\n"
        ends = row_ends(piece, quotes) + len(waiting)
        quotes += piece.count(b'"')
        waiting += piece
        found = np.concatenate([found, ends])
        while len(found) > header and (len(found) - header >= left or found[-1] >= most or not piece):
            start = int(found[0]) if header else 0
            block = found[header : header + left]
            require_plain_rows(waiting, np.concatenate([[0], found[: header + len(block) - 1]]))
            stop = int(block[-1])
            complete = len(block) == left or not piece
            yield Piece(bytes(memoryview(waiting)[start:stop]), number, complete and left == rows)
            number, left = (number + 1, rows) if complete else (number, left - len(block))
            del waiting[:stop]
            found, header = found[header + len(block) :] - stop, False
        if not piece:
            break
        if len(waiting) - (int(found[-1]) if len(found) else 0) > _LONGEST_ROW:
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
    """Raise `UnsupportedCsv` if a text starts with a byte order mark, which Arrow leaves out there and pandas keeps."""
    if text.startswith(_BYTE_ORDER_MARK):
        raise UnsupportedCsv("a byte order mark")


def require_plain_rows(text: bytes | bytearray, starts: NDArray[np.int64]) -> None:
    """Raise `UnsupportedCsv` if one of the rows, which start there, is empty or begins with a blank."""
    first = np.frombuffer(text, np.uint8)[starts]
    if np.isin(first, np.frombuffer(b"\n\r \t", np.uint8)).any():
        raise UnsupportedCsv("rows that are empty or begin with a blank")


def row_ends(text: bytes | bytearray, quotes: int = 0) -> NDArray[np.int64]:
    """Where each row of a CSV ends: after each line ending with an even number of quotes before it.

    `quotes` is the number of quotes before the text.
    """
    characters = np.frombuffer(text, np.uint8)
    ends = places_of(characters, _NEWLINE)
    places = places_of(characters, _QUOTE) if b'"' in text else np.zeros(0, np.int64)
    return ends[(np.searchsorted(places, ends) + quotes) % 2 == 0] + 1


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
    found = {}
    for name, values in zip(plan.columns, table.columns, strict=True):
        column = infer_column(whole(values), name in plan.texts, plan.missing)
        if column is None:
            return None
        found[name] = column
    return found


def require_plain_quotes(text: bytes | bytearray, size: int | None = None) -> None:
    """Raise `UnsupportedCsv` unless quotes enclose whole fields, and carriage returns outside of quotes end lines.

    Of the text, the first `size` bytes count, by default all.
    """
    characters = np.frombuffer(text, np.uint8, len(text) if size is None else size)
    quotes = np.zeros(0, np.int64)
    if text.find(b"\0", 0, size) >= 0:
        raise UnsupportedCsv("null characters")
    if text.find(b'"', 0, size) >= 0:
        quotes = places_of(characters, _QUOTE)
        opening, closing = quotes[::2], quotes[1::2]
        before = characters[opening - 1]
        before[opening == 0] = _NEWLINE
        after = characters[np.minimum(closing + 1, len(characters) - 1)]
        if not (_BEFORE_QUOTE[before].all() and _AFTER_QUOTE[after].all()):
            raise UnsupportedCsv("quotes within fields")
    if text.find(b"\r", 0, size) >= 0:
        returns = places_of(characters, _RETURN)
        returns = returns[np.searchsorted(quotes, returns) % 2 == 0]
        if not (characters[np.minimum(returns + 1, len(characters) - 1)] == _NEWLINE).all():
            raise UnsupportedCsv("lines that end with a carriage return")


def places_of(characters: NDArray[np.uint8], wanted: int) -> NDArray[np.int64]:
    """Where a character is. Part by part: results of comparing then stay in the processor's cache."""
    same = np.empty(min(PART, len(characters)), dtype=bool)
    found = []
    for start in range(0, len(characters), PART):
        part = characters[start : start + PART]
        found.append(np.flatnonzero(np.equal(part, wanted, out=same[: len(part)])) + start)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def count_of(text: bytes | bytearray, wanted: int, start: int, end: int) -> int:
    """How often a character occurs among `text[start:end]`: faster than `text.count` if it does so often."""
    characters = np.frombuffer(text, np.uint8, end - start, start)
    return sum(
        int(np.count_nonzero(characters[place : place + PART] == wanted)) for place in range(0, len(characters), PART)
    )


def infer_column(strings: pa.StringArray, is_text: bool, missing: bool) -> pa.Array | None:
    """The strings as int64, double or string with nulls, as pandas would infer them; None if only pandas can tell.

    Args:
        strings: the cells as they are in the file, without the quotes around them.
        is_text: whether the column is read as text whatever it contains.
        missing: whether pandas' default names of missing values, such as `NA`, count as missing.
    """
    lengths = pc.binary_length(strings).to_numpy()
    numbers = None if is_text else _numbers(strings, lengths, lengths == 0, missing)
    if numbers is not None:
        return numbers
    if missing:
        absent = pa.array(lengths == 0)
        if len(lengths) and lengths.min() <= _LONGEST_MISSING:
            absent = pc.or_(absent, pc.is_in(strings, pa.array(MISSING)))
        if pc.any(absent).as_py():
            strings = pc.if_else(absent, pa.scalar(None, pa.string()), strings)
    if is_text:
        return strings
    if strings.null_count == len(strings):
        return pa.nulls(len(strings), pa.float64())
    if strings.null_count:
        filled = pc.fill_null(strings, "")
        numbers = _numbers(filled, pc.binary_length(filled).to_numpy(), absent.to_numpy(zero_copy_only=False), missing)
        if numbers is not None:
            return numbers
    return strings if surely_text(strings) else None


def _numbers(
    strings: pa.StringArray, lengths: NDArray[np.int32], absent: NDArray[np.bool_], missing: bool
) -> pa.Array | None:
    """The strings as whole numbers or floats; None if they may be something else."""
    characters = characters_of(strings)
    gaps = bool(absent.any())
    if not len(characters) or (gaps and not missing):
        return None
    if not _NUMERIC[characters[:_SAMPLE]].all():
        return None
    digits = _are_digits(characters)
    whole = digits or (not _FRACTIONAL[characters[:_SAMPLE]].any() and not _fractional(characters))
    longest = int(lengths.max())
    if longest > (WHOLE_DIGITS if whole else FLOAT_DIGITS):
        return None
    if gaps:
        strings = pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), strings)
    # pandas drops the sign of zero where it takes a column for whole numbers; Arrow reads hexadecimal ones.
    if whole and not digits and _has_any(characters.tobytes(), (b"-0", b"x", b"X")):
        return None
    try:
        if whole and not gaps:
            return strings.cast(pa.int64())
        floats = strings.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    # In float columns, pandas has special rules for whole numbers beyond 64 bits and numbers outside the float range.
    # Arrow reads `nan` and `inf` as well.
    values = (floats.drop_null() if gaps else floats).to_numpy()
    largest = max(-values.min(), values.max())
    large = not np.isfinite(largest) or (longest > WHOLE_DIGITS and largest >= 10.0 ** (WHOLE_DIGITS - 1))
    return None if large else floats


def _has_any(text: bytes, wanted: Iterable[bytes]) -> bool:
    """Whether one of these is in the text. To look for one byte first is ten times faster where it does not occur."""
    return any(text.find(each[:1]) >= 0 and each in text for each in wanted)


def is_ordinary(strings: pa.StringArray) -> bool:
    """Whether pandas' ordinary converter gives the nearest float of every cell, each a number or missing.

    It multiplies or divides the number that the digits make by a power of ten (`precise_xstrtod`). Both are exact up to
    15 digits without an exponent, so that there is one rounding.
    """
    longest = pc.max(pc.binary_length(strings)).as_py() or 0
    return longest <= _ORDINARY and not any(mark in text_of(strings).tobytes() for mark in (b"e", b"E"))


def _are_digits(characters: NDArray[np.uint8]) -> bool:
    """Whether there is nothing but digits. Unlike comparisons of all characters, it needs no memory for results."""
    return bool(characters.max() <= ord("9") and characters.min() >= ord("0"))


def _fractional(characters: NDArray[np.uint8]) -> bool:
    """Whether there is a point or an exponent."""
    return bool((characters == ord(".")).any() or (characters | np.uint8(32) == ord("e")).any())


def surely_text(strings: pa.StringArray) -> bool:
    """Whether one of the first values is neither a number nor a boolean for any parser."""
    known = strings if not strings.null_count else strings.drop_null()
    for value in known[:_WITNESSES].to_pylist():
        if "_" in value:  # Python's `float` accepts underscores between digits, pandas does not
            return True
        try:
            float(value)
        except ValueError:
            if value.strip().lower() not in ("true", "false"):
                return True
    return False


def characters_of(texts: pa.Array) -> NDArray[np.uint8]:
    """The bytes of all texts, one after the other."""
    return np.frombuffer(text_of(texts), np.uint8)


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
