"""Submissions like those of careless or malicious agents, generated from a competition's sample and gold submission.

For each of them a grader must return a score or raise `InvalidSubmission`, never another exception. `mlebench check`
and the tests run all of them against every competition. The expected result is up to the tests of each competition.
"""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections.abc import Iterable, Iterator

from grading.competition_checks.cells import CELLS, hostile_cells, hostile_parts, with_word
from grading.competition_checks.csvfile import Row, table, to_csv

# Tried as one of the ids, because types or the order of rows may depend on them.
_ID_CELLS = (
    "empty",
    "nan",
    "infinity",
    "beyond 64 bits",
    "word",
    "fraction",
    "negative",
    "boolean",
    "NUL",
    "not Latin",
)
_LONG_NAME_CHARACTERS = 1_000_000
_DAMAGED_ROWS = 8
"""Rows of the gold submission of which each is damaged alone."""
_DAMAGED_WORDS = ("", "-1", "nan", "word", "1 0")


def hostile_submissions(sample: bytes, gold: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each hostile file. `sample` and `gold` are valid submissions (CSV).

    The first column is assumed to contain the ids, the others predictions.
    """
    header, rows = table(sample)
    yield from _files(sample)
    yield from _headers(header, rows)
    yield from _rows(header, rows)
    yield from hostile_cells(header, rows)
    yield from hostile_parts(*table(gold))
    yield from _damaged_rows(*table(gold))


def _files(sample: bytes) -> Iterator[tuple[str, bytes]]:
    text = sample.decode("utf-8-sig")
    lines = text.splitlines()
    noise = random.Random(0).randbytes(4_000)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("submission.csv", sample)
    yield "file: empty", b""
    yield "file: one line end", b"\n"
    yield "file: white space", b" \n \t\n  "
    yield "file: header only", f"{lines[0]}\n".encode()
    yield "file: no header", "\n".join(lines[1:]).encode()
    yield "file: header twice", "\n".join([lines[0], *lines]).encode()
    yield "file: noise", noise
    yield "file: noise behind the sample", sample + noise
    yield "file: NUL bytes", b"\0" * 1_000
    yield "file: NUL bytes behind the sample", sample + b"\0" * 100
    yield "file: UTF-16", text.encode("utf-16")
    yield "file: Latin-1", sample + "é,é\n".encode("latin-1")
    yield "file: byte order mark", b"\xef\xbb\xbf" + text.encode()
    yield "file: gzip", gzip.compress(sample, 1)
    yield "file: zip", zipped.getvalue()
    yield "file: JSON", b'[{"id": 1, "prediction": 2}]'
    yield "file: HTML", b"<!DOCTYPE html><html><body>error 502</body></html>\n"
    yield "file: unbalanced quote", sample + b'"'
    yield "file: unbalanced quote in front", b'"' + sample
    yield (
        "file: mixed line ends",
        "".join(
            line + line_end for line, line_end in zip(lines, ["\n", "\r\n", "\r"] * len(lines), strict=False)
        ).encode(),
    )
    yield "file: semicolons", text.replace(",", ";").encode()
    yield "file: tabs", text.replace(",", "\t").encode()
    yield "file: spaces behind commas", text.replace(",", ", ").encode()
    yield "file: comment in front", b"# made by a model\n" + sample
    yield "file: cut off", sample[: len(sample) * 2 // 3]
    yield "file: ragged line", sample + b"1,2,3,4,5,6,7,8,9\n" * 3 + b"1\n"
    yield "file: blank lines", text.replace("\n", "\n\n").encode()


def _headers(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    def named(names: Iterable[str]) -> bytes:
        return to_csv(list(names), rows)

    yield "columns: other names", named(f"x{number}" for number in range(len(header)))
    yield "columns: numbers for names", named(str(number) for number in range(len(header)))
    yield "columns: upper case", named(name.upper() + "_" for name in header)
    yield "columns: spaces around names", named(f" {name} " for name in header)
    yield "columns: all of one name", named(header[:1] * len(header))
    yield "columns: last named as the first", named([*header[:-1], header[0]])
    yield "columns: no names", named([""] * len(header))
    yield "columns: Python for names", named(["__class__", "index", "values"] * len(header))
    yield "columns: a long name", named([*header[:-1], "x" * _LONG_NAME_CHARACTERS])
    yield "columns: line end in a name", named([*header[:-1], "a\nb"])
    for number in sorted({0, 1, len(header) - 1}):
        yield f"columns: without column {number}", _without(header, rows, number)
        doubled = [[*row, row[number]] for row in rows]
        yield f"columns: column {number} twice", to_csv([*header, header[number]], doubled)
    yield "columns: an index in front", to_csv(["", *header], ([str(index), *row] for index, row in enumerate(rows)))
    yield (
        "columns: values without a name in front",
        to_csv(header, ([str(index), *row] for index, row in enumerate(rows))),
    )
    yield "columns: an extra one", to_csv([*header, "extra"], ([*row, "x"] for row in rows))
    yield "columns: reversed", to_csv(header[::-1], (row[::-1] for row in rows))
    yield (
        "columns: ten thousand",
        to_csv([*header, *map(str, range(10_000))], ([*row, *["0"] * 10_000] for row in rows[:2])),
    )


def _rows(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    first, rest = rows[0], rows[1:]
    yield "rows: one missing", to_csv(header, rest)
    yield "rows: half", to_csv(header, rows[: len(rows) // 2])
    yield "rows: one only", to_csv(header, rows[:1])
    yield "rows: one repeated", to_csv(header, [*rows, first])
    yield "rows: one in place of another", to_csv(header, [*rows[:-1], first])
    yield "rows: all twice", to_csv(header, rows * 2)
    yield "rows: the first only, as often", to_csv(header, [first] * len(rows))
    yield "rows: one unknown", to_csv(header, [["unknown", *first[1:]], *rest])
    yield "rows: one unknown more", to_csv(header, [*rows, ["unknown", *first[1:]]])
    yield "rows: an empty one", to_csv(header, [*rows, [""] * len(header)])
    ids = {
        "text": lambda text: f"x{text}",
        "numbers": lambda text: str(len(text)),
        "floats": lambda text: f"{text}.0",
        "empty": lambda text: "",
        "spaces around": lambda text: f" {text} ",
        "upper case": str.upper,
        "infinite": lambda text: "inf",
        "leading zeros": lambda text: f"00{text}",
        "booleans": lambda text: "True",
    }
    for name, change in ids.items():
        yield f"ids: {name}", to_csv(header, ([change(row[0]), *row[1:]] for row in rows))
    for name in _ID_CELLS:
        yield f"ids: one is {name}", to_csv(header, [[CELLS[name], *first[1:]], *rest])


def _without(header: Row, rows: Iterable[Row], number: int) -> bytes:
    return to_csv(header[:number] + header[number + 1 :], (row[:number] + row[number + 1 :] for row in rows))


def _damaged_rows(header: Row, rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the gold submission with the last word of a single cell replaced, in rows all over it."""
    for number in sorted({round(step * (len(rows) - 1) / (_DAMAGED_ROWS - 1)) for step in range(_DAMAGED_ROWS)}):
        count = len(rows[number][-1].split(" "))
        for word in _DAMAGED_WORDS:
            for position in {0, count - 1}:
                damaged = with_word(header, rows, number, -1, position, word)
                yield f"row {number}: {word!r} for word {position}", damaged
