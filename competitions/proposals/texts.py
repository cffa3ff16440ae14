"""Texts that pandas takes for numbers or missing values, and would write in another way: ids such as `007` and `NA`."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from competitions.proposals.layout import Table

UNIT = re.compile(
    r"(?:^|_)(?:\w*_?id|group|cluster|seq)\Z|[a-z](?:Id|ID|UID)\Z|patient|subject|person|speaker|author|customer|user"
    r"|household|family|study|breath|play\Z|location|site|session|molecule|well|engine|driver|vehicle|scene",
    re.IGNORECASE,
)
"""Names of columns whose cells are names."""
TIME = re.compile(r"date|time|(?:^|[^a-z])(?:year|quarter|month|week|day|hour|period|season|era|epoch)", re.IGNORECASE)
_CODE = r"\+|-?0\d|\d+[eE]\d+\Z"
_LONG_CODE = rf"{_CODE}|\d{{16}}"  # floats have 15 digits
_WHOLE = r"[+-]?\d+(?:[eE]\d+)?"


def read_rows(text: bytes, **options: Any) -> tuple[pd.DataFrame, list[str]]:
    """A table, and the columns of it that pandas would write in another way.

    Of these, texts stand in place of numbers, and of missing values if no text repeats. Spellings of measurements do
    not count: `0.50`, or `35` that becomes `35.0` beside an empty cell.

    Args:
        text: the table as a CSV.
        options: those of `pandas.read_csv`.
    """
    import pandas as pd

    rows = pd.read_csv(io.BytesIO(text), **options)
    places = [place for place, column in enumerate(rows) if _is_suspect(rows[column])]
    cells = pd.read_csv(io.BytesIO(text), usecols=places, dtype=str, keep_default_na=False, **options)
    if list(cells) != list(rows.columns[places]):  # rows are longer than the header
        return rows, []
    texts = [str(column) for column in cells if _differs(rows[column], cells[column])]
    for column in texts:
        if rows[column].dtype.kind in "iuf":
            rows[column] = cells[column].where(rows[column].notna())
        elif cells[column].is_unique:
            rows[column] = cells[column].where(cells[column] != "")
    return rows, texts


def _is_suspect(read: pd.Series) -> bool:
    return _is_whole(read) if read.dtype.kind in "iuf" else read.dtype.kind == "b" or bool(read.isna().any())


def _is_whole(read: pd.Series) -> bool:
    return read.dtype.kind in "iu" or (read.dtype.kind == "f" and bool((read.dropna() % 1 == 0).all()))


def _differs(read: pd.Series, cells: pd.Series) -> bool:
    if read.dtype.kind not in "iuf":
        return bool((read.fillna("").astype(str) != cells).any())
    names = UNIT.search(str(read.name))
    if cells.str.contains(".", regex=False).any() or (TIME.search(str(read.name)) and not names):
        return False
    is_float = read.dtype.kind == "f"
    codes = cells.str.match(_LONG_CODE if is_float else _CODE).any()
    return bool(codes or (names and is_float and read.notna().any()))


def make_alike(tables: Sequence[Table]) -> None:
    """Make columns of the same name all texts or all numbers, so that they can be compared.

    If a table fills numbers with zeros, and another one has them without these, as `007` and `7`, they are numbers.
    """
    import pandas as pd

    named: dict[str, list[tuple[Table, str]]] = defaultdict(list)
    for table in tables:
        for column in table.columns:
            named[column.lower()].append((table, column))
    for columns in named.values():
        texts = [(table, column) for table, column in columns if _is_of_digits(table, column)]
        numbers = [(table, column) for table, column in columns if _is_of_numbers(table, column)]
        if not texts or not numbers:
            continue
        filled = pd.concat([table.rows[column] for table, column in texts]).astype(str)
        width = filled[filled.str.match(r"0\d")].str.len().min()
        cells = [table.rows[column].convert_dtypes().astype("string") for table, column in numbers]
        if any(each.str.len().min() < width for each in cells):
            for table, column in texts:
                if column in table.texts:
                    table.texts.remove(column)
                    table.rows[column] = pd.to_numeric(table.rows[column])
            continue
        for (table, column), each in zip(numbers, cells, strict=True):
            table.texts.append(column)
            table.rows[column] = each.astype(object).where(table.rows[column].notna())


def _is_of_digits(table: Table, column: str) -> bool:
    if column not in table.texts and table.form not in ("records", "lines"):
        return False
    cells = table.rows[column].dropna()
    return cells.dtype == object and len(cells) > 0 and bool(cells.astype(str).str.fullmatch(_WHOLE).all())


def _is_of_numbers(table: Table, column: str) -> bool:
    cells = table.rows[column]
    return table.form == "text" and _is_whole(cells) and cells.nunique() > 1
