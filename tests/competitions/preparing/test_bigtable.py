"""A big table must be, byte for byte, what one read_csv, a selection of rows and one to_csv give."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions.errors import DownloadError
from competitions.preparing.download import Download
from competitions.preparing.tables import bigtable, scratch_rows
from competitions.preparing.tables.bigtable import BigTable

NASTY = [
    "plain", "1", "007", "1.50", "1e5", "nan", "NA", "", " ", "True", "-0", "9007199254740993", "18446744073709551615",
    "nan ", '"a,b"', '"say ""yes"""', '"two\nlines"', '"carriage\r\nreturn"', '"bare\rreturn"', "ünïcode \U0001f600",
    '"\n"', '""""',
]  # fmt: skip


TableOf = Callable[..., tuple[BigTable, pd.DataFrame]]


@pytest.fixture
def table_of(tmp_path: Path) -> TableOf:
    def build(text: str, keep: tuple[str, ...] = (), **options: Any) -> tuple[BigTable, pd.DataFrame]:
        (tmp_path / "table.csv").write_text(text, "utf-8", newline="")
        whole = pd.read_csv(io.StringIO(text, newline=""), **{"float_precision": "round_trip", **options})
        return BigTable(Download.open(str(tmp_path)), "table.csv", keep=keep, **options), whole

    return build


def written(table: BigTable, rows: np.ndarray) -> str:
    return b"".join(table.content(rows).pieces()).decode()


def same(table: BigTable, whole: pd.DataFrame, rows: np.ndarray) -> None:
    assert len(table) == len(whole)
    assert written(table, rows) == whole.iloc[rows].to_csv(index=False)
    assert table.frame(rows).to_csv(index=False) == whole.iloc[rows].to_csv(index=False)


@pytest.mark.filterwarnings("ignore:Columns")
@pytest.mark.parametrize(("window", "most"), [(64, 500), (5000, 1 << 20), (1 << 20, 500)])
@pytest.mark.parametrize("seed", range(4))
def test_equals_pandas_on_nasty_cells(
    table_of: TableOf, monkeypatch: pytest.MonkeyPatch, window: int, most: int, seed: int
) -> None:
    monkeypatch.setattr(scratch_rows, "WINDOW", window)
    monkeypatch.setattr(bigtable, "_MAX_FORMATTED_BYTES", most)
    rng = np.random.default_rng(seed)
    columns = [rng.choice(rng.choice(NASTY, rng.integers(1, len(NASTY)), replace=False), 500) for _ in range(5)]
    rows = [f"{i},{','.join(cells)}\n" for i, cells in enumerate(zip(*columns, strict=True))]
    same(*table_of("id,a,b,b,c,d\n" + "".join(rows)), rng.permutation(500)[:400])


@pytest.mark.filterwarnings("ignore:Columns")
@pytest.mark.parametrize("most", [100_000, 1 << 30])
@pytest.mark.parametrize(
    ("early", "late"),
    [("7", "2.50"), ("7", "x"), ("1.50", "x"), ("True", "3"), ("True", "x"), ("7", ""), ("", "x"), ("", "True"),
     ("7", "18446744073709551615"), ("9007199254740993", "0.5"), ("1.50", "True"), ("5", "99999999999999999999")],
)  # fmt: skip
def test_types_are_those_of_the_whole_file(
    table_of: TableOf, monkeypatch: pytest.MonkeyPatch, early: str, late: str, most: int
) -> None:
    monkeypatch.setattr(bigtable, "_MAX_FORMATTED_BYTES", most)
    # pandas infers types in blocks of 2^18 rows of three columns: "1.50" stays text only beside text in its block.
    before, after = f"0,{early},\n", f"0,{late},\n"
    text = "id,value,empty\n" + before * 262_144 + after + before * 10 + "1,,\n"
    table, whole = table_of(text)
    same(table, whole, np.random.default_rng(0).permutation(len(whole))[-2000:])
    same(table, whole, np.arange(262_140, len(whole)))


def test_kept_columns_have_the_types_of_the_whole_file(table_of: TableOf) -> None:
    table, whole = table_of("id,value\n" + "1,2\n" * 300_000 + "1,\n", keep=("value",))
    pd.testing.assert_frame_equal(table.kept, whole[["value"]])


def test_kept_texts_are_categories_of_the_whole_file(table_of: TableOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bigtable, "_MAX_FORMATTED_BYTES", 1000)
    table, whole = table_of("day,value\n" + "b,2\n" * 1000 + ",2\n" + "a,1\n", keep=("value", "day"))
    assert list(table.kept) == ["value", "day"]
    assert table.kept["day"].dtype == "category"
    pd.testing.assert_series_equal(table.kept["day"].astype(whole["day"].dtype), whole["day"])


def test_options_reach_the_parser(table_of: TableOf) -> None:
    same(*table_of("Id,Tags\n007,null\n008,\n", dtype={"Id": str, "Tags": str}), np.array([1, 0]))
    same(*table_of("Id,Tags\n007,null\n008,x\n", keep_default_na=False), np.array([1, 0]))


def test_one_column_with_gaps(table_of: TableOf) -> None:
    same(*table_of('a\nx\n""\ny\n'), np.array([1, 2, 0]))


def test_empty_table_and_empty_selection(table_of: TableOf) -> None:
    same(*table_of("a,b\n"), np.array([], dtype=np.int64))
    same(*table_of("a,b\n1,2\n"), np.array([], dtype=np.int64))


def test_repeated_rows(table_of: TableOf) -> None:
    same(*table_of("a,b\n1,2\n3,4\n"), np.array([1, 1, 0, 1]))


def test_rows_that_several_windows_repeat(table_of: TableOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_rows, "WINDOW", 200)
    same(*table_of("a,b\n" + "".join(f"{row},x\n" for row in range(50))), np.arange(200) * 7 % 50)


@pytest.mark.parametrize("order", ["as in the file", "another"])
def test_what_is_read_and_written_grows_with_the_table(
    table_of: TableOf, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """However many windows the result has: 3, 30 or 300."""
    count: Counter[str] = Counter()
    pread, pwrite = os.pread, os.pwrite

    def reads(file: int, size: int, place: int) -> bytes:
        count["read"] += size
        return pread(file, size, place)

    def writes(file: int, data: bytes, place: int) -> int:
        count["written"] += len(data)
        return pwrite(file, data, place)

    monkeypatch.setattr(os, "pread", reads)
    monkeypatch.setattr(os, "pwrite", writes)
    monkeypatch.setattr(scratch_rows, "WINDOW", 50_000)
    for rows in (3_000, 30_000, 300_000):
        table, _ = table_of("a,b\n" + "".join(f"{row:06d},x\n" for row in range(rows)))
        wanted = table.rows[1:] if order == "as in the file" else np.random.default_rng(0).permutation(rows)[1:]
        count.clear()
        size = len(written(table, wanted))
        whole = size + 10
        assert count["read"] <= (whole if order == "as in the file" else 2 * whole)
        assert count["written"] <= (0 if order == "as in the file" else size)


PEAK = """
import resource, sys
import numpy as np
from competitions.preparing.download import Download
from competitions.preparing.tables.bigtable import BigTable

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table = BigTable(Download.open(sys.argv[1]), "table.csv")
for piece in table.content(np.random.default_rng(0).permutation(len(table))).pieces():
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_memory_is_that_of_the_documentation(tmp_path: Path) -> None:
    """docs/performance.md: about 400 MB besides some bytes a row. The 150 MB of rows are one block for pandas."""
    text = '"a title","' + 'words and ""quotes"", and\nlines. ' * 40 + '"'
    with (tmp_path / "table.csv").open("w") as file:
        file.write("id,title,body\n")
        file.writelines(f"{row},{text}\n" for row in range(120_000))
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400, "MB"


def test_scratch_leaves_nothing_behind(table_of: TableOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table, _ = table_of("a,b\n1,2\n")
    assert written(table, table.rows) == "a,b\n1,2\n"
    assert [path.name for path in Path(tmp_path).iterdir()] == ["table.csv"]


@pytest.mark.parametrize("step", [1, 7, 100])
@pytest.mark.parametrize("size", [1, 10, 40, 10**6])
def test_parts_are_consecutive_and_bounded(monkeypatch: pytest.MonkeyPatch, step: int, size: int) -> None:
    monkeypatch.setattr(scratch_rows, "_STEP_ROWS", step)
    lengths = np.array([3, 0, 5, 2, 10, 1, 1, 4, 40, 6, 0, 8] * 3, dtype=np.int32)
    parts = list(scratch_rows._ranges(len(lengths), lengths.__getitem__, size))
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(len(lengths)))
    assert all(lengths[part].sum() <= size + lengths.max() for part in parts)
    assert list(scratch_rows._ranges(0, lengths.__getitem__, size)) == []


def test_a_quote_that_is_never_closed_is_told_before_the_file_is_in_memory(
    table_of: TableOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bigtable, "_MAX_BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr("competitions.tables.csv_blocks._MAX_ROW_BYTES", 1 << 16)
    monkeypatch.setattr("competitions.tables.csv_blocks._READ_BYTES", 1 << 14)
    text = "a,b\n" + "1,x\n" * 1000 + '2,"stray\n' + "3,y\n" * 1_000_000
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DownloadError, match=r"table\.csv has .* a quote that is never closed"):
        BigTable(Download.open(str(tmp_path)), "table.csv")


def test_a_quote_within_a_field_is_no_stray_one(table_of: TableOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("competitions.tables.csv_blocks._MAX_ROW_BYTES", 1 << 16)
    monkeypatch.setattr("competitions.tables.csv_blocks._READ_BYTES", 1 << 14)
    table, whole = table_of("a,b\n" + '1,5" disk\n' + "2,y\n" * 100_000)
    same(table, whole, np.arange(len(whole))[::-1])
