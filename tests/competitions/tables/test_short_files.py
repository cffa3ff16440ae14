"""Short files read by splitting text equal those read with pandas, or are left to pandas."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions.tables import short_files
from tests.competitions.tables.random_tables import FLOATS, HARD_NUMBERS, ODD, WHOLE, outcome, spelled, table


def simple_table(rng: random.Random) -> bytes:
    """Columns of one kind each."""
    kinds = [rng.choice(["text", "hard", "int", "float", "bool"]) for _ in range(rng.randint(2, 4))]
    lines = [",".join(f"c{number}" for number in range(len(kinds)))]
    for _ in range(rng.randint(1, 60)):
        cells = {
            "text": rng.choice([f"{rng.randint(0, 99)}_1", "naïve", " x", "y ", *rng.sample(ODD, 1)]),
            "hard": rng.choice(HARD_NUMBERS),
            "int": str(rng.randint(-(10 ** rng.randint(1, 19)), 10**6)),
            "float": repr(rng.random() * 10 ** rng.randint(-30, 30)),
            "bool": rng.choice(["True", "False", "true", "FALSE"]),
        }
        lines.append(",".join(cells[kind] for kind in kinds))
    return "\n".join(lines).encode()


@pytest.mark.parametrize("seed", range(20))
def test_the_result_is_that_of_pandas(seed: int, tmp_path: Path) -> None:
    rng, path, read = random.Random(seed), tmp_path / "table.csv", 0
    for number in range(100):
        content = table(rng) if number % 2 else simple_table(rng)
        path.write_bytes(content)
        found = short_files.read(path)
        if found is None:
            continue
        expected = outcome(lambda: pd.read_csv(path, float_precision="round_trip"))
        assert isinstance(expected, pd.DataFrame)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        read += 1
    assert read, "the fast way is taken"


@pytest.mark.parametrize("cell", [*HARD_NUMBERS, *ODD, "18446744073709551616", "+7", "-9223372036854775808"])
def test_each_hard_cell_is_read_as_pandas_reads_it(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for others in (["1", "2"], ["0.5", "1e3"], ["a", "b"], ["True", "False"], []):
        path.write_text("\n".join(["id,p", *(f"x{row},{value}" for row, value in enumerate([*others, cell]))]), "utf-8")
        found = short_files.read(path)
        if found is not None:
            expected = pd.read_csv(path, float_precision="round_trip")
            pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_only_the_wanted_columns_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id,p,q\na,,x\nb,2,\n")
    assert short_files.read(path) is None, "cells are missing"
    assert short_files.read(path, ["q", "id"]) is None
    path.write_text("id,p,q\na,,x\nb,2,y\n")
    found = short_files.read(path, ["other", "q", "id"])
    assert found is not None
    assert found.to_dict("list") == {"id": ["a", "b"], "q": ["x", "y"]}


@pytest.mark.parametrize("text", ["id,p\n", "id,p", "", "id\n1\n", "id,p\n1,2,3\n", "id,p\n1\n", "id,p\n1,2\n\n"])
def test_odd_shapes_are_left_to_pandas(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert short_files.read(path) is None


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_short_tables_of_many_columns_of_numbers_are_those_of_pandas(
    kinds: list[Callable[[random.Random], str]], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, path, read = random.Random(seed), tmp_path / "table.csv", 0
    monkeypatch.setattr(short_files, "MANY", 2)
    monkeypatch.setattr(short_files, "_WIDE", 0)  # nothing but all at once
    for number in range(60):
        chosen, start = [rng.choice(kinds) for _ in range(rng.randint(2, 30))], rng.choice(["a", "7", "é"])
        names = ["id", *(f"c{place}" for place in range(len(chosen)))]
        rows = [[f"{start}{row}", *(kind(rng) for kind in chosen)] for row in range(rng.randint(1, 30))]
        if number % 2:
            rows[rng.randrange(len(rows))][rng.randrange(len(names))] = rng.choice([*HARD_NUMBERS, *ODD, "1" * 101])
        if number % 5 == 4:  # a cell more or less, or a row without any
            place = rng.randrange(len(rows))
            rows[place] = rng.choice([[], rows[place][1:], [*rows[place], "1"]])
        content = spelled([names, *rows], rng)[: None if rng.random() < 0.8 else -1]
        path.write_bytes(content)
        found = short_files.read(path)
        if found is None:
            continue
        read += 1
        expected = outcome(lambda: pd.read_csv(path, float_precision="round_trip"))
        assert isinstance(expected, pd.DataFrame), content
        pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=repr(content))
        assert [found[name].dtype for name in found] == [expected[name].dtype for name in expected]
        ours, pandas = (frame.select_dtypes(float).to_numpy() for frame in (found, expected))
        assert (np.signbit(ours) == np.signbit(pandas)).all()
    assert read > 10


ROWS = {
    "a comma within quotes, and a cell less": 'a,"1,2"\nb,3,4\n',
    "a line end within quotes": 'a,1,"2\nb",3,4\n',
    "a quote within a cell": 'a,1"2,3\nb,4,5\n',
    "a lone carriage return": "a,1,2\r\nb,3\r4,5\r\n",
    "one cell more, then one less": "a,1,2,3\nb,4\n",
    "an empty row": "a,1,2\n\nb,3,4\n",
    "a cell that is empty": "a,1,\nb,3,4\n",
    "a float of many digits": f"a,0.5,0.{'1' * 101}\nb,0.5,0.5\n",
    "hexadecimal": "a,1,0x1A\nb,3,4\n",
    "a column of whole numbers among floats": "a,0.5,1\nb,0.5,2\n",
    "a blank first": " a,1,2\nb,3,4\n",
    "a null character": "a,1,2\nb\0,3,4\n",
    "no first cell": ",1,2\nb,3,4\n",
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_what_is_not_certain_to_be_numbers_is_left_to_pandas(
    rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    monkeypatch.setattr(short_files, "MANY", 2)
    monkeypatch.setattr(short_files, "_WIDE", 0)
    path.write_text("id,p,q\n" + rows, newline="")
    assert short_files.read(path) is None
    path.write_text('id,p,q\r\n"a",1,"2"\r\n"b",3,4\r\n', newline="")
    found = short_files.read(path)
    assert found is not None
    pd.testing.assert_frame_equal(found, pd.read_csv(path), check_exact=True)


def test_wide_tables_are_read_at_once_up_to_a_size_for_each_column(tmp_path: Path) -> None:
    path, names = tmp_path / "table.csv", ",".join(f"c{number}" for number in range(100))
    for rows, cell, at_once in ((1, "0.5", True), (500, "0.5", True), (500, "0.5000000000", False), (500, "x", False)):
        path.write_text("\n".join([names, *[",".join([cell] * 100)] * rows]))
        assert (short_files.read(path) is not None) == at_once
    path.write_text("\n".join([names, *[",".join(["0.5"] * 100)] * 9]))
    assert short_files.read(path, ["c1", "c2"]) is None, "all columns or none"


def test_numbers_of_a_block_for_which_pandas_infers_types_are_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drops the sign of a zero if there is no float in the same block of rows."""
    path = tmp_path / "table.csv"
    monkeypatch.setattr(short_files, "MANY", 2)
    monkeypatch.setattr(short_files, "_WIDE", 0)
    monkeypatch.setattr(short_files, "inference_rows", lambda count: 4)
    path.write_text("a,b,c\n" + "x,0.5,0.5\n" * 4)
    assert short_files.read(path) is not None
    path.write_text("a,b,c\n" + "x,0.5,0.5\n" * 4 + "x,-0,-0\n")
    assert short_files.read(path) is None


@pytest.mark.parametrize("rows", [1, 2])
def test_a_wide_table_may_be_written(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(",".join(f"c{k}" for k in range(26)) + "\n" + (",".join(["0.5"] * 26) + "\n") * rows)
    found = short_files.read(path)
    assert found is not None
    found["c4"].to_numpy()[0] = 3
    found.loc[0, "c3"] = 0.25
    assert [found[name].tolist()[0] for name in ("c3", "c4", "c5")] == [0.25, 3, 0.5]
