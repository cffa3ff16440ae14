"""Blocks of a CSV: cut where rows end, read as pandas reads them, and left to pandas where that is not sure."""

from __future__ import annotations

import io
import sys
from typing import Any

import pandas as pd
import pytest

from competitions.tables import csv_blocks
from competitions.tables.csv_blocks import Plan, UnsupportedCsv, cut, parse

ROUND_TRIP: dict[str, Any] = {"float_precision": "round_trip"}


def blocks_of(text: str, rows: int = 2) -> list[bytes]:
    return [piece.text for piece in cut(io.BytesIO(text.encode()), rows, sys.maxsize)]


def test_a_large_block_comes_in_pieces() -> None:
    text = "a,b\n" + "".join(f"{row},{'x' * row}\n" for row in range(60))
    pieces = list(cut(io.BytesIO(text.encode()), 50, 300))
    assert b"".join(piece.text for piece in pieces) == text[4:].encode()
    rows = {number: sum(p.text.count(b"\n") for p in pieces if p.block == number) for number in (0, 1)}
    assert rows == {0: 50, 1: 10}
    assert [piece.whole for piece in pieces] == [False] * len(pieces)
    assert max(len(piece.text) for piece in pieces) <= 600
    assert [piece.whole for piece in cut(io.BytesIO(text.encode()), 50, sys.maxsize)] == [True, True]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_blocks_have_so_many_rows_however_the_stream_comes(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "_READ_BYTES", piece)
    assert blocks_of('a,b\n1,2\n"x\n""y",3\n4,5') == [b'1,2\n"x\n""y",3\n', b"4,5\n"]
    assert blocks_of('"a\nb",c\r\n1,2\r\n') == [b"1,2\r\n"]


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1,2\n\n3,4\n", "a,b\n 1,2\n", "a,b\n1,2\n\r\n", 'a,b\n1,"2\n'])
def test_rows_that_pandas_counts_in_its_own_way_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedCsv):
        blocks_of(text)


@pytest.mark.parametrize("text", ["\ufeff1,a\n", '1,a"b\n', '1,"a"b\n', "1,a\rb\n", "1,2,3\n", "1\n", "1,\0\n"])
def test_fields_that_may_be_others_for_pandas_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedCsv):
        parse(text.encode(), Plan(("a", "b"), frozenset(), True))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20", "007"], "int64"),
        (["1", "", "3"], "double"),
        (["1.5", "nan", "-2e-7"], "double"),
        (["", "NA"], "double"),
        (["2010-01-05", "NULL", "x"], "string"),
        (['"a,b"', '"say ""yes"""', '"two\r\nlines"'], "string"),
        (["True", "False"], None),
        (["1", "x" * 3, "+5"], "string"),
        (["99999999999999999999", "1"], None),
        (["99999999999999999999", "1.5"], None),
        (["inf", "1"], None),
    ],
)
def test_a_column_is_what_pandas_makes_of_it(values: list[str], kind: str | None) -> None:
    text = "".join(f"k{number},{value}\n" for number, value in enumerate(values))
    found = parse(text.encode(), Plan(("key", "value"), frozenset(), True))
    assert (str(found["value"].type) if found else None) == kind
    if found:
        expected = pd.read_csv(io.StringIO(text, newline=""), names=["key", "value"], **ROUND_TRIP)
        pd.testing.assert_frame_equal(csv_blocks.frame(found), expected)


def test_options_that_are_not_known_call_for_pandas() -> None:
    columns = ["a", "b"]
    assert Plan.of(columns, {**ROUND_TRIP, "dtype": {"a": str}, "keep_default_na": False}) == Plan(
        ("a", "b"), frozenset({"a"}), False
    )
    assert Plan.of(["a"], ROUND_TRIP) is None, "an empty line may be a row"
    for options in ({"sep": ";"}, {"dtype": {"a": "int32"}}, {"dtype": str}, {"float_precision": None}):
        assert Plan.of(columns, {**ROUND_TRIP, **options}) is None


class Endless(io.RawIOBase):
    """A file of which `read_so_far` bytes were read: a head, and then the same line again and again up to `size`."""

    def __init__(self, head: bytes, size: int) -> None:
        self.head, self.size, self.read_so_far = head, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.size - self.read_so_far)
        line = b"1,some text\n"
        text = self.head if self.read_so_far == 0 else b""
        data = (text + line * (count // len(line) + 1))[:count]
        buffer[:count] = data
        self.read_so_far += count
        return count


def test_a_stray_quote_does_not_read_the_rest_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "_MAX_ROW_BYTES", 1 << 20)
    monkeypatch.setattr(csv_blocks, "_READ_BYTES", 1 << 18)
    file = Endless(b'a,b\n1,2\n3,"stray\n', 1 << 40)
    with pytest.raises(UnsupportedCsv, match="without an end"):
        list(cut(io.BufferedReader(file), 1000, sys.maxsize))
    assert file.read_so_far < 3 << 20


def test_long_rows_below_the_bound_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "_MAX_ROW_BYTES", 1 << 12)
    monkeypatch.setattr(csv_blocks, "_READ_BYTES", 1 << 8)
    long = '"' + "x\n" * 2000 + '",2\n'
    assert blocks_of("a,b\n1,2\n" + long + "3,4\n", 1) == [b"1,2\n", long.encode(), b"3,4\n"]
