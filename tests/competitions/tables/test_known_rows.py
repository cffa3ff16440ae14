"""Rows that are left out before parsing are none of the known ones, and decide nothing about the others."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from competitions.tables import columns, pieces
from competitions.tables.csv_blocks import Unusual
from competitions.tables.known_rows import KnownRows

ODD_ROWS = ["a", "a,b,c", "", " a,b", "\ta,b", ",", ",b", 'a,"b"', "a,b\r", "a\0,b", ",,"]
CELLS = ["x", "x y", "", "NA", "nan", "1", "2.5", "True", "naïve", "0123"]


@pytest.fixture(autouse=True)
def every_file_is_read_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SMALL", 0)
    monkeypatch.setattr(pieces, "PIECE", 512)
    monkeypatch.setattr(columns, "_SHARE", 0)
    monkeypatch.setattr(columns, "_SLACK", 16)


@pytest.mark.parametrize("seed", range(30))
def test_the_known_rows_are_those_of_pandas(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path, read = random.Random(seed), tmp_path / "table.csv", 0
    for _ in range(40):
        rows_at_a_time = rng.choice([8, 64, 1 << 18])
        monkeypatch.setattr(columns, "inference_rows", lambda count, rows=rows_at_a_time: rows)
        length, others = rng.choice([None, 3, 8, 20]), rng.choice([0, 0, 1, 2])
        ids = [f"{rng.getrandbits(80):020x}"[: length or rng.randint(1, 20)] for _ in range(rng.randint(1, 120))]
        cells = ["x", "x y"] if rng.random() < 0.7 else CELLS
        lines = [",".join([name, *(rng.choice(cells) for _ in range(others + 1))]) for name in ids]
        if rng.random() < 0.2:
            lines[rng.randrange(len(lines))] = rng.choice(ODD_ROWS)
        names = ["id", *"pqr"[: others + 1]]
        path.write_text("\n".join([",".join(names), *lines]) + rng.choice(["\n", ""]), "utf-8", newline="")
        wanted = rng.sample(ids, min(len(ids), rng.randint(1, 9)))
        table = columns.read_table(path, known=KnownRows("id", pa.array(wanted)))
        if table is None:
            continue
        read += 1
        found, expected = columns.frame(table, "object"), pd.read_csv(path, float_precision="round_trip")
        assert len(found) <= len(expected)
        found, expected = (rows[rows["id"].isin(wanted)].reset_index(drop=True) for rows in (found, expected))
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert read, "the fast way is taken"


def test_most_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id,p\n" + "".join(f"x{number:032x},text {number}\n" for number in range(20_000)))
    table = columns.read_table(path, known=KnownRows("id", pa.array([f"x{7:032x}", f"x{19_999:032x}"])))
    assert table is not None
    assert table.num_rows < 4_000, "with the first and the last row of each piece"
    assert {"text 7", "text 19999"} <= set(table["p"].to_pylist())


def test_rows_are_left_out_by_the_first_column_only(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("p,id\n" + "".join(f"text {number},x{number:032x}\n" for number in range(100)))
    table = columns.read_table(path, known=KnownRows("id", pa.array([f"x{7:032x}"])))
    assert table is not None
    assert table.num_rows == 100


@pytest.mark.parametrize("row", ["a", "abcdefghij,b,c", ",", " abcdefghij,b", ""])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_rows_of_another_shape_are_left_to_pandas_even_if_they_are_not_known(row: str, place: int) -> None:
    lines = ["abcdefghij,b", "abcdefghik,b", "abcdefghil,b"]
    lines.insert(place, row)
    text = "".join(f"{line}\n" for line in lines).encode()
    known = KnownRows("id", pa.array(["abcdefghik"]))
    if row == ",":  # which has the right shape
        assert b",\n" in known.rows_of(text, len(text), 2, 100)[0]
        return
    with pytest.raises(Unusual):
        known.rows_of(text, len(text), 2, 100)


def test_rows_of_more_columns_have_all_their_cells() -> None:
    known = KnownRows("id", pa.array(["abcdefghik"]))
    text = b"abcdefghij,b,c\nabcdefghik,b\nabcdefghil,b,c,d\n"
    with pytest.raises(Unusual):
        known.rows_of(text, len(text), 3, 100)
