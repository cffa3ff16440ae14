"""Reading in columns equals reading with pandas, or is left to pandas: hard numbers, blanks, quotes, encodings."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from competitions.scoring.reading import Reads, read_answers, read_submission
from competitions.tables import columns
from tests.competitions.tables.random_tables import (
    KINDS,
    NUMBERS,
    outcome,
    read,
    table,
)

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("seed", range(20))
def test_the_result_is_that_of_pandas(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path, taken = random.Random(seed), tmp_path / "table.csv", 0
    for number in range(40):
        rows = rng.choice([4, 16, 1 << 18])  # for which pandas infers types at a time
        monkeypatch.setattr(columns, "inference_rows", lambda count, rows=rows: rows)
        monkeypatch.setattr(columns, "MANY", (1, 2, 20)[number % 3])
        content = table(rng)
        path.write_bytes(content)
        expected = outcome(lambda: pd.read_csv(io.BytesIO(content), float_precision="round_trip"))  # noqa: B023
        found = read(path)
        if found is None:
            continue
        taken += 1
        assert isinstance(expected, pd.DataFrame), content
        pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=repr(content))
        some = list(found.columns)[1:]
        part = read(path, some)
        assert part is not None
        pd.testing.assert_frame_equal(part, expected[some], check_exact=True)
        as_arrow = read(path, texts="arrow")
        assert as_arrow is not None
        for name, values in as_arrow.items():
            plain = values.astype(object) if isinstance(values.dtype, pd.ArrowDtype) else values
            pd.testing.assert_series_equal(plain.where(plain.notna()), expected[name].where(expected[name].notna()))
    assert taken, "the fast way is taken"


OPTIONS: list[dict[str, Any]] = [
    {"keep_default_na": False, "float_precision": "round_trip"},
    {"float_precision": None},
    {"float_precision": None, "keep_default_na": False},
    {"dtype": {"c0": "int8"}, "float_precision": "round_trip"},
    {"dtype": {"c0": "float64"}, "float_precision": "round_trip"},
    {"dtype": {"c0": "int32", "c1": "float64"}, "float_precision": None},
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_the_result_is_that_of_pandas_with_options(options: dict[str, Any]) -> None:
    rng, taken, numbers = random.Random(repr(options)), 0, 0
    rules = columns.Rules.of(options)
    assert rules is not None
    for number in range(600):
        content = table(rng, NUMBERS if number % 2 else KINDS)
        found = columns.read_stream(io.BytesIO(content), rules)
        if found is None:
            continue
        taken += 1
        numbers += pa.float64() in found.schema.types
        expected = outcome(lambda: pd.read_csv(io.BytesIO(content), **options))  # noqa: B023
        assert isinstance(expected, pd.DataFrame), content
        pd.testing.assert_frame_equal(columns.frame(found, "object"), expected, check_exact=True, obj=repr(content))
        for name, values in expected.items():
            if values.dtype == float:
                assert (np.signbit(found[name].to_numpy()) == np.signbit(values)).all(), content
    assert taken > 10, "the fast way is taken"
    assert numbers, "by columns of floats, too"


@pytest.mark.parametrize(
    "options", [{"sep": "\t"}, {"dtype": str}, {"dtype": {"c0": str}}, {"usecols": ["c0"]}, {"float_precision": "high"}]
)
def test_other_options_are_left_to_pandas(options: dict[str, Any]) -> None:
    assert columns.Rules.of(options) is None


def test_columns_get_their_types_without_pandas() -> None:
    content = b"a,b,c\n1,0.5,2\n-128,1,3\n"
    options: dict[str, Any] = {"dtype": {"a": "int8", "b": "float64", "c": "float64"}}
    rules = columns.Rules.of(options)
    assert rules is not None
    found = columns.read_stream(io.BytesIO(content), rules)
    assert found is not None
    pd.testing.assert_frame_equal(columns.frame(found, "object"), pd.read_csv(io.BytesIO(content), **options))
    for cell in (b"128", b"0.5", b"x", b""):  # pandas decides what to say
        assert columns.read_stream(io.BytesIO(content.replace(b"-128", cell)), rules) is None


@pytest.mark.parametrize("digits", [8, 15])
def test_floats_of_few_digits_are_those_of_pandas_ordinary_converter(digits: int) -> None:
    rng = random.Random(digits)
    cells = [
        f"{rng.choice(['', '-'])}{rng.random() * 10 ** rng.randint(-3, 6):.15f}"[: digits + 1] for _ in range(5_000)
    ]
    cells = [cell + "1" if cell.endswith((".", "-")) else cell for cell in cells]
    content = ("a,b\n" + "".join(f"1,{cell}\n" for cell in cells)).encode()
    found = columns.read_stream(io.BytesIO(content), columns.Rules(exact=False))
    assert found is not None
    expected = pd.read_csv(io.BytesIO(content))
    pd.testing.assert_frame_equal(columns.frame(found, "object"), expected, check_exact=True)


@pytest.mark.parametrize("cell", ["0.1234567890123456", "1e-7", "123456789012345.25", "1E3"])
def test_floats_that_pandas_ordinary_converter_may_round_twice_are_left_to_it(cell: str) -> None:
    content = f"a,b\n1,0.5\n1,{cell}\n".encode()
    assert columns.read_stream(io.BytesIO(content), columns.Rules(exact=False)) is None
    assert columns.read_stream(io.BytesIO(content)) is not None


def test_a_negative_zero_among_whole_numbers_is_left_to_pandas() -> None:
    for cells in ("1\n-0\n", "-0\n1.5\n"):
        content = ("a,b\n" + cells.replace("\n", ",x\n")).encode()
        found = columns.read_stream(io.BytesIO(content))
        assert (found is None) == (cells == "1\n-0\n")


@pytest.mark.parametrize("cell", ["1e400", "-1e400", "1.8e308", "1" * 400])
def test_numbers_beyond_the_range_of_floats_are_left_to_pandas(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"id,p\na,1\nb,{cell}\n")
    assert read(path) is None


@pytest.mark.parametrize(
    "content", ["id,p\n\na,1\n", "id,p\na,1\n\nb,2\n", "id,p\r\na,1\r\n\r\nb,2\r\n", "id,p\na,1\n\n"]
)
def test_empty_rows_are_left_to_pandas(content: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode())
    assert read(path) is None
    path.write_text('id,p\na,"x\n\ny"\n')
    assert read(path) is not None, "empty lines within a cell are none"


def test_a_column_whose_types_pandas_mixes_is_left_to_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "inference_rows", lambda count: 4)
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,1\n" * 4 + "x,1\n" * 4)
    assert read(path) is None
    path.write_text("a,b\n" + "x,1\n1,1\n1,1\n1,1\n" * 2)
    assert read(path) is not None


def test_a_cell_that_is_not_utf_8_counts_even_if_its_column_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"id,p\n\xff,1\n")
    assert read(path, ["p"]) is None


def test_graders_read_the_columns_that_they_declare(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id,p,q\na,1,x\nb,2,\n")
    for size in (0, 1 << 20):  # in columns, and by pandas
        columns.SMALL = size
        reads = Reads(answers=("q", "id"), texts="arrow")
        assert list(read_answers(path, reads=reads).columns) == ["id", "q"]
        assert list(read_submission(path, reads=reads).columns) == ["id", "p", "q"], "an agent's columns are checked"


@pytest.mark.parametrize(
    "odd", ['"a"b', 'a"b', '"a"b"', '"a""', '"a"b"c"', '""', '"', '"a,""b"', '"a\nb"', 'a""b', '"a" ']
)
@pytest.mark.parametrize("others", ["12", '"x,y"'])
def test_quotes_wherever_they_are_mean_what_they_mean_to_pandas(odd: str, others: str) -> None:
    rng = random.Random(odd)
    for _ in range(40):
        rows = [f"{n}_,{odd if rng.random() < 0.3 else others},{rng.choice(['z', others])}" for n in range(12)]
        content = "\n".join(["p,q,r", *rows, *[""][: rng.randint(0, 1)]]).encode()
        found = columns.read_stream(io.BytesIO(content))
        if found is not None:
            expected = pd.read_csv(io.BytesIO(content), float_precision="round_trip")
            pd.testing.assert_frame_equal(columns.frame(found, "object"), expected)


@pytest.mark.parametrize("cell", ["5", "aa", '"aa"', ""])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_byte_order_mark_in_a_row_is_kept(cell: str, before: int) -> None:
    rows = [b"7,x"] * before + [f"\ufeff{cell},x".encode()] + [b"8,y"] * 3
    content = b"\n".join([b"p,q", *rows, b""])
    found = columns.read_stream(io.BytesIO(content))
    if found is not None:
        expected = pd.read_csv(io.BytesIO(content), float_precision="round_trip")
        pd.testing.assert_frame_equal(columns.frame(found, "object"), expected)


def test_quotes_around_cells_are_read_in_columns() -> None:
    content = ("p,q\n" + "".join(f'{n}_,"x,{n}"\n' for n in range(50))).encode()
    assert columns.read_stream(io.BytesIO(content)) is not None
    assert columns.read_stream(io.BytesIO(content + b'5"_,"x"\n6"_,"y"\n')) is None, "quotes within cells"


@pytest.mark.parametrize(("rows", "in_columns"), [(40, False), (4_000, True)])
def test_short_tables_with_many_columns_are_left_to_pandas(
    rows: int, in_columns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # pieces of the usual size
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join(f"c{number}" for number in range(1_000)), *[",".join("1" * 1_000)] * rows, ""]))
    assert (read(path) is not None) == in_columns
