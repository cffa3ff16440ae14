"""Quotes and carriage returns change nothing if quotes stand around whole cells and line ends are of one kind."""

from __future__ import annotations

import csv
import io
import random
import re
from itertools import product

import pytest

from competitions.tables import csv_blocks, plain_marks
from competitions.tables.plain_marks import are_plain

CELL = rb'(?:"[^",\r\n]*"|[^",\r\n]*)'
PLAIN = re.compile(rb"(?:%(cell)s(?:,|\n))*|(?:%(cell)s(?:,|\r\n))*" % {b"cell": CELL})


def check(rows: bytes) -> bool:
    found = are_plain(rows, len(rows))
    assert found == bool(PLAIN.fullmatch(rows)), rows
    assert found == are_plain(bytearray(rows + b'x"'), len(rows)), "what follows does not count"
    if found:
        bare = rows.translate(None, b'\r"').decode()
        quoted = [row if row != [""] else [] for row in csv.reader(io.StringIO(rows.decode(), newline=""))]
        assert quoted == [*csv.reader(io.StringIO(bare))]
    return found


def test_every_short_text() -> None:
    found = [check(bytes(cells) + b"\n") for size in range(6) for cells in product(b'",\n\ra', repeat=size)]
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("part", [1, 2, 3, 16, 1 << 19])
def test_rows_of_all_kinds(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_marks, "PART", part)
    monkeypatch.setattr(csv_blocks, "PART", part)
    rng, found = random.Random(part), []
    for _ in range(600):
        quoted, end = rng.choice([0, 0.3, 1, 1, 1]), rng.choice(["\n", "\r\n"])
        rows = [[rng.choice(["", "a", "12", "_"]) for _ in range(3)] for _ in range(rng.randint(1, 5))]
        text = "".join(
            ",".join(f'"{cell}"' if rng.random() < quoted else cell for cell in row) + end for row in rows
        ).encode()
        if rng.random() < 0.7:  # one character more, less or other
            place = rng.randrange(len(text))
            text = (
                text[:place]
                + rng.choice([b"", b'"', b",", b"\r", b"\n", b"\0", b'""'])
                + text[place + rng.randint(0, 1) :]
            )
        if text.endswith(b"\n") and b"\0" not in text:
            found.append(check(text))
    assert 50 < sum(found) < len(found) - 50


def test_null_characters_are_not_plain() -> None:
    assert not are_plain(b"a,\0\n", 4)
    assert are_plain(b"a,\0\n", 1)
