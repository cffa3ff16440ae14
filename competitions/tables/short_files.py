"""Read a short CSV file as a frame with Python's own `split`, many times faster than the set-up of a parser.

The frame equals that of ``pandas.read_csv(path, float_precision="round_trip")``, or there is none: what is not certain
to be the same is left to pandas, as in `columns`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from competitions.tables.arrays import MANY
from competitions.tables.columns import SMALL, header
from competitions.tables.csv_blocks import FLOAT_DIGITS, MISSING, NUMERALS, WHOLE_DIGITS, Unusual, is_text
from competitions.tables.csv_types import inference_rows
from competitions.tables.pieces import PIECE
from competitions.tables.wide import block_of

if TYPE_CHECKING:
    import pandas as pd

_WIDE = 64  # columns from which each takes its time
_TRUE, _BOOLEANS = {"True", "TRUE", "true"}, {"True", "TRUE", "true", "False", "FALSE", "false"}
_ABSENT = {"", *MISSING}
_NO_NUMERALS = str.maketrans("", "", NUMERALS.decode())


def read(path: Path, wanted: Collection[str] | None = None) -> pd.DataFrame | None:
    """The table in `path`; None if it is not short, or only pandas is known to read it right.

    Args:
        path: a CSV file in UTF-8 with a header.
        wanted: names of the columns to read, by default all. Those that the file does not have are left out.

    Raises:
        OSError: the file cannot be read.
    """
    import pandas as pd

    with path.open("rb") as file:
        size, line = os.fstat(file.fileno()).st_size, file.readline(PIECE)
        commas = line.count(b",")
        if size >= max(SMALL, commas * (SMALL // 8)):
            return None
        body = file.read()
    try:
        names = header(line)
    except Unusual:
        return None
    chosen = [name for name in names if wanted is None or name in wanted]
    if len(names) > MANY and len(chosen) == len(names) and (table := _wide(names, body)) is not None:
        return table
    if size >= SMALL or len(names) >= _WIDE or not chosen or any(mark in line + body for mark in (b'"', b"\r", b"\0")):
        return None
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    columns = _cells(text.removesuffix("\n"), len(names))
    values = {name: _values(columns[names.index(name)]) for name in chosen} if columns else {}
    if not values or any(column is None for column in values.values()):
        return None
    return pd.DataFrame(values, index=pd.RangeIndex(len(columns[0])), copy=False)


def _wide(names: Sequence[str], body: bytes) -> pd.DataFrame | None:
    """A table whose columns behind the first are all whole numbers, or all floats."""
    import pandas as pd

    found = block_of(body if body.endswith(b"\n") else body + b"\n", len(names))
    if found is None or len(found[0]) > inference_rows(len(names)):
        return None
    first, block = _values(found[0]), found[1]
    if first is None:
        return None
    table = pd.DataFrame(block.T, pd.RangeIndex(len(first)), list(names[1:]), copy=False)
    table.insert(0, names[0], first)
    return table


def _cells(text: str, count: int) -> list[list[str]]:
    """The cells of each of `count` columns; none unless every row has them all and begins with a cell."""
    blank = text[:1] in (" ", "\t") or "\n " in text or "\n\t" in text  # pandas skips some of these rows
    if blank or {*map(str.count, text.split("\n"), repeat(","))} != {count - 1}:
        return []
    cells = text.replace("\n", ",").split(",")
    return [cells[number::count] for number in range(count)]


def _values(cells: Sequence[str]) -> NDArray[Any] | None:
    """The cells as pandas infers them; None if a value is missing, or if only pandas can tell."""
    distinct = set(cells)
    if not distinct.isdisjoint(_ABSENT):
        return None
    if distinct <= _BOOLEANS:
        return np.array([cell in _TRUE for cell in cells])
    if is_text(cells):
        return np.array(cells, dtype=object)
    characters, longest = "".join(distinct), max(map(len, distinct))
    if characters.translate(_NO_NUMERALS):
        return None
    whole = not any(mark in characters for mark in ".eE")
    if longest > (WHOLE_DIGITS if whole else FLOAT_DIGITS) or (whole and "+" in characters):
        return None
    try:
        numbers = np.array([int(cell) for cell in cells] if whole else [float(cell) for cell in cells])
    except ValueError:
        return None
    # In float columns, pandas has special rules for whole numbers beyond 64 bits and numbers outside the float range.
    largest = float(np.abs(numbers).max())
    return None if largest == np.inf or (longest > WHOLE_DIGITS and largest >= 10.0 ** (WHOLE_DIGITS - 1)) else numbers
