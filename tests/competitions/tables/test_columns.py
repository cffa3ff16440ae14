"""Reading in columns equals reading with pandas, or is left to pandas: hard numbers, blanks, quotes, encodings."""

from __future__ import annotations

import csv as standard_csv
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from competitions.scoring.reading import Reads, read_answers, read_submission
from competitions.tables import columns, pieces, wide

HARD_NUMBERS = [
    "0.1", "0.30000000000000004", "1e-320", "4.9e-324", "1.7976931348623157e308", "9007199254740993", "1e22", "1e23",
    "123456789012345678", "0.000001", "8.5e-5", "-0.0", "-0", "007", "1.", ".5", "2.2250738585072011e-308",
    "0.1000000000000000055511151231257827021181583404541015625", "179769313486231570000", "5e-1",
]  # fmt: skip
ODD = [
    "", "NA", "nan", "null", "None", "inf", "-Infinity", "True", "FALSE", "true", "+5", "1e400", "99999999999999999999",
    "1_000", "1,000", " 1", "2 ", "\t3", "0x1A", "1e5x", "12:30", "--1", "2010-01-05", "٣", "1.5.2", "#N/A", "e5", "-",
    "12345678901234567890.5", "1d5", "NaN", "<NA>", "n/a",
]  # fmt: skip
TEXTS = [
    "a",
    "naïve",
    "日本",
    "two words",
    'say "yes"',
    "a,b",
    "line\nbreak",
    "cr\r\nlf",
    " lead",
    "trail ",
    "x" * 300,
    "'",
]
KINDS: list[Callable[[random.Random], str]] = [
    lambda rng: rng.choice(HARD_NUMBERS),
    lambda rng: str(rng.randint(-(10**6), 10**6)),
    lambda rng: repr(rng.random() * 10 ** rng.randint(-30, 30)),
    lambda rng: f"{rng.uniform(-50, 1000):.{rng.randint(1, 4)}f}",
    lambda rng: rng.choice(TEXTS),
    lambda rng: rng.choice(["True", "False"]),
    lambda rng: f"{rng.randint(0, 99)}_{rng.randint(0, 9)}",
    lambda rng: rng.choice(ODD),
    lambda rng: rng.choice([*HARD_NUMBERS, ""]),
    lambda rng: rng.choice([*TEXTS, "", "NA"]),
]


def quoted(cell: str, always: bool) -> str:
    return '"' + cell.replace('"', '""') + '"' if always or any(mark in cell for mark in '",\n\r') else cell


NUMBERS: list[Callable[[random.Random], str]] = [
    lambda rng: str(rng.randint(-128, 127)),
    lambda rng: str(rng.randint(-129, 127)),
    lambda rng: f"{rng.uniform(-50, 1000):.{rng.randint(1, 4)}f}",
]


def table(rng: random.Random, choice: list[Callable[[random.Random], str]] = KINDS) -> bytes:
    """A table of a few columns, of one kind each with a rare cell of another, spelled in one of several ways."""
    kinds = [rng.choice(choice) for _ in range(rng.randint(1, 5))]
    always, end = rng.random() < 0.2, rng.choice(["\n", "\n", "\r\n"])
    other = rng.random() < 0.3
    lines = [",".join(quoted(f"c{k}", always) for k in range(len(kinds)))]
    for _ in range(rng.randint(1, 60)):
        cells = [rng.choice(KINDS)(rng) if other and rng.random() < 0.02 else kind(rng) for kind in kinds]
        lines.append(",".join(quoted(cell, always) for cell in cells))
    if rng.random() < 0.2:  # odd in one place, or broken
        place = rng.randrange(len(lines))
        lines[place] = rng.choice(["", "", " ", lines[place] + ",", 'a"b,1', '"open', "\0,1", " " + lines[place]])
    encoding = "utf-8" if rng.random() < 0.95 else "latin-1"
    return (end.join(lines) + (end if rng.random() < 0.8 else "")).encode(encoding, "replace")


def read(path: Path, wanted: list[str] | None = None, texts: columns.Texts = "object") -> pd.DataFrame | None:
    found = columns.read_table(path, wanted)
    return None if found is None else columns.frame(found, texts)


def outcome(read: Callable[[], pd.DataFrame]) -> pd.DataFrame | str:
    try:
        return read()
    except (ValueError, OverflowError) as error:
        return type(error).__name__


@pytest.fixture(autouse=True)
def every_file_is_read_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SMALL", 0)
    monkeypatch.setattr(pieces, "PIECE", 256)
    monkeypatch.setattr(columns, "_SHARE", 0)
    monkeypatch.setattr(columns, "_SLACK", 16)
    monkeypatch.setattr(pieces, "_LONGEST_ROW", 4096)


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


FLOATS: list[Callable[[random.Random], str]] = [
    lambda rng: repr(rng.random() * 10 ** rng.randint(-30, 16)),
    lambda rng: f"{rng.uniform(-50, 1000):.{rng.randint(1, 4)}f}",
    lambda rng: rng.choice(
        ["1e-320", "4.9e-324", "1e16", "1E3", "8.5e-5", "-0.0", ".5", "1.", "-1e-7", "0.1" + "0" * 25]
    ),
]
WHOLE: list[Callable[[random.Random], str]] = [
    lambda rng: str(rng.randint(0, 1)),
    lambda rng: str(rng.randint(-(10**18), 10**18)),
]


def spelled(rows: list[list[str]], rng: random.Random) -> bytes:
    """The table with quotes around no cell, the first ones, some or all, and line ends of a kind, or of both."""
    chance, first, other = rng.choice([(0, 0, 0), (0, 1, 0), (0.5, 0.5, 0), (1, 1, 0), (1, 1, 0), (1, 1, 0.01)])
    ends = rng.choice(["\n", "\n", "\r\n", "\r\n", "\r\n\n"])  # of each row one of these, or both
    text = ""
    for row in rows:
        cells = [quoted(cell, rng.random() < (chance if place else first)) for place, cell in enumerate(row)]
        text += ",".join(cell.strip('"') if rng.random() < other else cell for cell in cells)
        text += ends if ends != "\r\n\n" else rng.choice(["\n", "\r\n"])
    return text.encode()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_wide_tables_of_numbers_are_those_of_pandas(
    kinds: list[Callable[[random.Random], str]], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns at once, or one by one where there is a cell of another kind in any of them."""
    rng, path = random.Random(seed), tmp_path / "table.csv"
    at_once: list[bool] = []

    def numbers_of(*given: Any) -> pa.Table | None:
        found = wide.numbers_of(*given)
        at_once.append(found is not None)
        return found

    monkeypatch.setattr(columns, "numbers_of", numbers_of)
    monkeypatch.setattr(columns, "MANY", 2)
    monkeypatch.setattr(pieces, "PIECE", 2048)
    for number in range(40):
        chosen, start = [rng.choice(kinds) for _ in range(rng.randint(2, 30))], rng.choice(["a", "7", "x-0"])
        names = ["id", *(f"c{place}" for place in range(len(chosen)))]
        rows = [[f"{start}{row}", *(kind(rng) for kind in chosen)] for row in range(40)]
        if number % 2:
            rows[rng.randrange(len(rows))][rng.randrange(len(names))] = rng.choice([*HARD_NUMBERS, *ODD, "1" * 101])
        content = spelled([names, *rows], rng)
        path.write_bytes(content)
        found = read(path)
        if found is not None:
            expected = outcome(lambda: pd.read_csv(io.BytesIO(content), float_precision="round_trip"))  # noqa: B023
            assert isinstance(expected, pd.DataFrame), content
            pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=repr(content))
            ours, pandas = (frame.select_dtypes(float).to_numpy() for frame in (found, expected))
            assert (np.signbit(ours) == np.signbit(pandas)).all()
    assert at_once.count(True) > 20


@pytest.mark.parametrize("spelling", [{"quoting": standard_csv.QUOTE_ALL}, {"lineterminator": "\r\n"}], ids=str)
def test_quotes_and_line_ends_of_wide_tables_cost_nothing(spelling: dict[str, Any], monkeypatch: Any) -> None:
    """The columns are not read as texts first."""
    table = pd.DataFrame(np.random.default_rng(0).random((50, 30)), columns=[f"c{place}" for place in range(30)])
    table.insert(0, "id", [f"x{row}" for row in range(50)])
    content = table.to_csv(index=False, **spelling).encode()
    inferred: list[pa.Array] = []

    def column(strings: pa.Array, _: columns.Rules) -> pa.Array:
        inferred.append(strings)
        return strings

    monkeypatch.setattr(columns, "_column", column)
    monkeypatch.setattr(pieces, "PIECE", 1 << 20)
    found = columns.read_stream(io.BytesIO(content))
    assert found is not None
    pd.testing.assert_frame_equal(columns.frame(found, "object"), table, check_exact=True)
    assert len(inferred) == 1


@pytest.mark.parametrize(
    "odd", ['"a,1"', '"1\n2"', '"1\r\n2"', '1"2', '"1"2', '"1""2"', '""', '"', " 1", '" 1"', "1\r2", '"\ufeff"', "1\0"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_odd_cells_among_quoted_numbers_mean_what_they_mean_to_pandas(
    odd: str, place: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MANY", 2)
    for always in (False, True):
        for row in range(3):
            rows = [[quoted("1", always), '"2"', quoted("3", always)] for _ in range(3)]
            rows[row][place] = odd
            content = end.join(["p,q,r", *map(",".join, rows), ""]).encode()
            found = columns.read_stream(io.BytesIO(content))
            if found is not None:
                expected = outcome(lambda: pd.read_csv(io.BytesIO(content), float_precision="round_trip"))  # noqa: B023
                assert isinstance(expected, pd.DataFrame), content
                pd.testing.assert_frame_equal(columns.frame(found, "object"), expected, obj=repr(content))


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
