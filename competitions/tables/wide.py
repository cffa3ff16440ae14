"""Tables of many columns of numbers: Arrow makes these from the text at once, without texts of cells in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from competitions.tables.arrays import whole
from competitions.tables.csv_blocks import FLOAT_DIGITS, NUMERALS, PART, WHOLE_DIGITS, places_of
from competitions.tables.plain_marks import are_plain

_COMMA, _NEWLINE = b",", b"\n"
_REMOVABLE = b'\r"'
_PADDING = (b" ", b"\t")
_NOT_WHOLE = (b".", b"-0", b"x", b"X")
"""Most floats have a point; pandas drops the sign of zero where it takes a column for whole numbers; Arrow reads
hexadecimal ones."""
_LARGE = 10.0 ** (WHOLE_DIGITS - 1)


def numbers_of(text: bytes | bytearray, end: int, names: Sequence[str], chosen: Sequence[str]) -> pa.Table | None:
    """The first column of some rows as texts, and the chosen other ones as pandas would infer them.

    None if these are not all floats, or all whole numbers, in ordinary spellings and without a missing one. What
    `csv_blocks.infer_column` asks of a column is asked of all of them here.

    Args:
        text: rows.
        end: where the last one ends.
        names: of the columns.
        chosen: some of them.
    """
    first = bytes(text[: text.find(b"\n", 0, end)]).translate(None, _REMOVABLE).split(_COMMA)
    others = set(chosen) - {names[0]}  # an agent may write as many columns as it likes
    cells = [cell for name, cell in zip(names, first, strict=False) if name in others]
    fractional = {_is_fractional(cell) for cell in cells}
    if len(fractional) != 1 or any(cell.translate(None, NUMERALS) for cell in cells):
        return None
    if any(text.find(blank, 0, end) >= 0 for blank in _PADDING) or not are_plain(text, end):
        return None
    floats = fractional.pop()
    if not floats and any(text.find(mark, 0, end) >= 0 for mark in _NOT_WHOLE):
        return None
    if floats and _may_be_long(np.frombuffer(text, np.uint8, end)):
        return None
    quoted = text.find(b'"', 0, end) >= 0
    included = dict.fromkeys([names[0], *chosen])
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(memoryview(text)[:end])),
            csv.ReadOptions(use_threads=False, block_size=end + 1, column_names=list(names)),
            csv.ParseOptions(quote_char='"' if quoted else False, ignore_empty_lines=False),
            csv.ConvertOptions(
                check_utf8=False,
                column_types={**dict.fromkeys(included, pa.float64() if floats else pa.int64()), names[0]: pa.string()},
                include_columns=list(included),
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table if not floats or _are_ordinary(table) else None


def block_of(text: bytes, count: int) -> tuple[list[str], NDArray[Any]] | None:
    """The first of `count` columns as texts, and the others as an array of shape (columns, rows) of int64 or double.

    As `numbers_of`, for short texts: it takes no time for each column, but more for each cell. None as well if a row
    has more or fewer cells, or if the text is not UTF-8.

    Args:
        text: rows, of which a line feed ends the last.
        count: of columns, at least two.
    """
    if any(blank in text for blank in _PADDING) or not are_plain(text, len(text)):
        return None
    rows = [row.partition(b",") for row in text.translate(None, _REMOVABLE).removesuffix(b"\n").split(b"\n")]
    numbers = b",".join([rest for _, _, rest in rows]) + b","
    characters = np.frombuffer(numbers, np.uint8)
    ends = places_of(characters, *_COMMA)
    row_ends = np.cumsum([len(rest) + 1 for _, _, rest in rows]) - 1
    if len(ends) != (count - 1) * len(rows) or (ends[count - 2 :: count - 1] != row_ends).any():
        return None
    lengths = np.diff(ends, prepend=-1) - 1
    cells = numbers.translate(None, _COMMA)
    floats = _is_fractional(cells)
    if lengths.max() >= FLOAT_DIGITS:
        return None
    if floats and not all(_is_fractional(cell) for cell in rows[0][2].split(b",")):
        return None  # some columns may be whole numbers
    if not floats and any(mark in cells for mark in _NOT_WHOLE):
        return None
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    texts = pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(cells)])
    try:
        values = texts.cast(pa.float64() if floats else pa.int64()).to_numpy()
        first = [cell.decode("utf-8") for cell, _, _ in rows]
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if floats and not np.abs(values).max() < _LARGE:
        return None
    # A copy, also of a single row: graders may write into it.
    return first, np.array(values.reshape(len(rows), count - 1).T, order="C")


def _is_fractional(cell: bytes) -> bool:
    return any(mark in cell for mark in (b".", b"e", b"E"))


def _may_be_long(characters: NDArray[np.uint8]) -> bool:
    """Whether a cell may have more than `FLOAT_DIGITS` characters. None has, if one ends in each half of as many."""
    block = FLOAT_DIGITS // 2
    size = PART // block * block
    for start in range(0, len(characters), size):
        part = characters[start : start + size]
        ends = part == _COMMA[0]
        ends |= part == _NEWLINE[0]
        if not ends[: len(ends) // block * block].reshape(-1, block).any(axis=1).all():
            return True
    return False


def _are_ordinary(table: pa.Table) -> bool:
    """Whether all floats are finite, and none may be a whole number beyond 64 bits, for which pandas has other rules.

    Arrow reads `nan` and `inf` as well.
    """
    for column in table.columns[1:]:
        values = whole(column).to_numpy()
        if not max(-values.min(), values.max()) < _LARGE:  # which is so of NaN
            return False
    return True
