"""CSV files as rows of strings, so that cells can be changed without interpreting them."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence

Row = list[str]


def table(content: bytes) -> tuple[Row, list[Row]]:
    """Header and rows of a CSV, with cells as strings."""
    csv.field_size_limit(sys.maxsize)  # the cell of a mask can have megabytes
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    return header, rows


def to_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The CSV of a header and rows of strings."""
    lines = [header, *rows]
    joined = "\n".join(map(",".join, lines)) + "\n"
    counts = joined.count("\n"), joined.count(",")
    # A row that consists of one empty cell needs quotes.
    expected = len(lines), sum(map(len, lines)) - len(lines)
    if counts == expected and min(map(len, lines)) > 1 and '"' not in joined and "\r" not in joined:
        return joined.encode()  # without checking each cell
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(lines)
    return text.getvalue().encode()
