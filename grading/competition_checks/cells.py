"""Hostile submissions that differ from valid ones in their cells."""

from __future__ import annotations

from collections.abc import Iterator

from grading.competition_checks.csvfile import Row, to_csv

# Cell contents by name.
CELLS = {
    "empty": "",
    "blank": "   ",
    "nan": "nan",
    "infinity": "inf",
    "minus infinity": "-inf",
    "beyond float": "1e400",
    "beyond float below": "-1e400",
    "huge": "1e308",
    "denormal": "5e-324",
    "negative": "-1",
    "fraction": "0.3",
    "two": "2",
    "beyond 64 bits": "99999999999999999999",
    "lowest integer": "-9223372036854775808",
    "word": "word",
    "boolean": "True",
    "none": "None",
    "minus": "-",
    "thousands separator": "1,234.5",
    "percent": "50%",
    "spaces around": " 0.5 ",
    "list": "[0.1, 0.9]",
    "dictionary": '{"a": [1, {"b": null}]}',
    "deep list": "[" * 5_000,
    "Python": "__import__('os').system('false')",
    "SQL": "'; DROP TABLE answers; --",
    "HTML": "<script>alert(1)</script>",
    "formula": "=1+1",
    "hexadecimal": "0x1F",
    "underscores": "1_000",
    "complex": "1+2j",
    "date": "2020-02-30",
    "not Latin": "数字 ٣ 🙂",
    "line end": "a\nb",
    "tab": "1\t2",
    "NUL": "a\0b",
    "odd run": "1 2 3",
    "run beyond the image": "1 999999999999",
    "negative run": "-5 3",
    "run of nothing": "1 0",
    "zeros": "0 0 0 0 0 0 0 0",
    "floats": "0.5 0.5 0.5 0.5 0.5 0.5 0.5",
    "not numbers": "nan nan inf -inf nan nan nan",
    "huge numbers": "1e308 1e308 1e308 1e308 1e308 1e308 1e308",
    "label and numbers": "car 0.9 -1 -1 -2 -2",
}
# Replacements for one word of a longer cell, such as a mask, a box or a list of labels.
_PARTS = ("", "nan", "inf", "-inf", "1e400", "1e308", "-1", "0", "0.5", "99999999999999999999", "word", "\n")
_LONG_CELL_CHARACTERS = 1_000_000


def hostile_cells(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the sample submission with one cell of the last column replaced, or with all cells but the ids replaced."""
    first, rest = rows[0], rows[1:]
    for name, cell in CELLS.items():
        yield f"cells: {name} in one", to_csv(header, [[*first[:-1], cell], *rest])
        yield f"cells: {name} in all", to_csv(header, ([row[0], *[cell] * (len(row) - 1)] for row in rows))
    yield "cells: everything empty", to_csv(header, [[""] * len(header)] * len(rows))
    yield "cells: ids for predictions", to_csv(header, ([row[0]] * len(row) for row in rows))
    yield (
        "cells: true and false in turn",
        to_csv(header, ([row[0], *[str(number % 2 == 0)] * (len(row) - 1)] for number, row in enumerate(rows))),
    )
    long_cells = {
        "letters": "a" * _LONG_CELL_CHARACTERS,
        "digits": "9" * _LONG_CELL_CHARACTERS,
        "numbers": "1 " * (_LONG_CELL_CHARACTERS // 2),
        "words": "ab " * (_LONG_CELL_CHARACTERS // 3),
    }
    for name, cell in long_cells.items():
        yield f"cells: a megabyte of {name}", to_csv(header, [[*first[:-1], cell], *rest])


def hostile_parts(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the gold submission with one word of its longest cell replaced, to test parsers of cells."""
    row, column = max(
        ((r, c) for r in range(len(rows)) for c in range(len(rows[r]))), key=lambda spot: len(rows[spot[0]][spot[1]])
    )
    count = len(rows[row][column].split(" "))
    if count < 2:
        return
    for position in sorted({0, 1, count // 2, count - 1}):
        for part in _PARTS:
            yield f"parts: {part!r} for word {position}", with_word(header, rows, row, column, position, part)


def with_word(header: Row, rows: list[Row], number: int, column: int, position: int, word: str) -> bytes:
    """The rows with one word of a cell replaced."""
    row = list(rows[number])
    words = row[column].split(" ")
    words[position] = word
    row[column] = " ".join(words)
    return to_csv(header, [*rows[:number], row, *rows[number + 1 :]])
