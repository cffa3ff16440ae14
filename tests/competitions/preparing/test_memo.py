"""What is kept of a download for a second reader: it is read once, and no reader sees what another one changes."""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pytest

from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.download import Download
from competitions.preparing.memo import Memo
from competitions.preparing.tables.bigtable import BigTable

ROWS = 20_000
LARGE = os.urandom(5 << 20)
TABLE = pd.DataFrame(
    {
        "id": np.arange(ROWS),
        "x": np.linspace(0, 1, ROWS),
        "text": [f"row {number % 7}" for number in range(ROWS)],
        "gap": [None if number % 3 else 1.5 for number in range(ROWS)],
        "flag": np.arange(ROWS) % 2 == 0,
    }
)


@pytest.fixture
def download(tmp_path: Path) -> Download:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", TABLE.to_csv(index=False))
        archive.writestr("small.csv", TABLE[:20].to_csv(index=False))
        archive.writestr("lines.json", TABLE[:20].to_json(orient="records", lines=True))
        archive.writestr("document.json", '{"pairs": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "nan": NaN}')
        archive.writestr("large.bin", LARGE)
        archive.writestr("small.txt", "some text")
    return Download.open(str(tmp_path / "raw.zip"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()
    original = ZipContainer.open

    def counted(self: ZipContainer, name: str) -> IO[bytes]:
        found[name] += 1
        return original(self, name)

    monkeypatch.setattr(ZipContainer, "open", counted)
    return found


def spoil(table: pd.DataFrame) -> None:
    """Change a frame in every way that changes it in place."""
    for column in table:
        table[column].to_numpy()[:1] = table[column].to_numpy()[5:6]
        table.loc[1:9, column] = table[column].iloc[11]
    table.drop(columns="text", inplace=True)


@pytest.mark.parametrize("name", ["table.csv", "small.csv"])
@pytest.mark.parametrize(
    "options", [{}, {"texts": "arrow"}, {"usecols": ["id", "text", "x"]}, {"float_precision": None}]
)
def test_what_one_reader_changes_in_a_table_never_reaches_the_other(
    download: Download, opened: Counter[str], name: str, options: dict[str, Any]
) -> None:
    alone = download.read_csv(name, **options)
    opened.clear()
    with download.remembering() as memo:
        first = download.read_csv(name, **options)
        pd.testing.assert_frame_equal(first, alone)
        if options.get("texts") != "arrow":
            spoil(first)
        again = download.read_csv(name, **options)
        pd.testing.assert_frame_equal(again, alone)
        memo.begin_last()
        last = download.read_csv(name, **options)
        pd.testing.assert_frame_equal(last, alone)
        assert last is not again
    assert opened == {name: 1}


def test_a_table_that_editions_read_differently_is_opened_once(download: Download, opened: Counter[str]) -> None:
    with download.remembering() as memo:
        download.read_csv("table.csv", keep_default_na=True)
        memo.begin_last()
        assert download.read_csv("table.csv", keep_default_na=False)["gap"].dtype == object
    assert opened == {"table.csv": 1}


def test_documents_are_independent_values(download: Download, opened: Counter[str]) -> None:
    with download.remembering() as memo:
        first = download.read_json("document.json")
        first["pairs"][0]["name"] = "changed"
        first["pairs"].pop()
        memo.begin_last()
        last = download.read_json("document.json")
    assert last["pairs"] == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert np.isnan(last["nan"])
    assert opened == {"document.json": 1}


def test_json_lines_are_parsed_once(download: Download, opened: Counter[str]) -> None:
    with download.remembering():
        first = download.read_json_lines("lines.json")
        first.loc[:, "id"] = 0
        pd.testing.assert_frame_equal(
            download.read_json_lines("lines.json")[["id", "text"]], TABLE[:20][["id", "text"]]
        )
    assert opened == {"lines.json": 1}


@pytest.mark.parametrize("name", ["large.bin", "small.txt"])
def test_a_file_is_opened_once_by_several_readers_at_a_time(
    download: Download, opened: Counter[str], name: str
) -> None:
    content = download.read_bytes(name)
    opened.clear()
    with download.remembering() as memo:
        with download.open_file(name) as one, download.open_file(name) as two:
            assert one.read(5) == content[:5]
            two.seek(3)
            assert two.read(4) == content[3:7]
            assert one.read() == content[5:]
            assert two.seek(-2, io.SEEK_END) == len(content) - 2
            assert two.read() == content[-2:]
        memo.begin_last()
        assert download.read_bytes(name) == content
    assert opened == {name: 1}


def test_of_a_file_only_what_is_read_is_taken(tmp_path: Path) -> None:
    source, memo = io.BytesIO(LARGE), Memo()
    with memo.file("large", len(LARGE), lambda: source) as file:
        assert file.read(10) == LARGE[:10]
    assert source.tell() < len(LARGE) / 2
    with memo.file("large", len(LARGE), lambda: source) as file:
        assert file.read() == LARGE


def test_what_a_kept_value_is_made_of_is_not_kept_besides(download: Download, opened: Counter[str]) -> None:
    with download.remembering() as memo:
        download.read_json("document.json")
        memo.begin_last()
        download.read_bytes("document.json")
    assert opened == {"document.json": 2}


def test_files_without_room_are_opened_again(
    download: Download, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("competitions.preparing.memo._SHARE", 1 << 60)
    with download.remembering():
        assert download.read_bytes("large.bin") == download.read_bytes("large.bin") == LARGE
    assert opened == {"large.bin": 2}


def test_values_without_room_are_read_again() -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    memo, reads = Memo(), iter([1, 2])
    codec = type("Full", (), {"dump": staticmethod(full)})
    assert [memo.value("key", lambda: next(reads), codec) for _ in range(2)] == [1, 2]  # type: ignore[arg-type]


def test_after_the_block_nothing_is_kept(download: Download, opened: Counter[str]) -> None:
    with download.remembering():
        download.read_csv("table.csv")
    for _ in range(2):
        download.read_csv("table.csv")
    assert opened == {"table.csv": 3}


def test_a_big_table_is_formatted_once_and_its_kept_columns_are_independent(
    download: Download, opened: Counter[str]
) -> None:
    alone = BigTable(download, "table.csv", keep=("x",))
    text = b"".join(alone.content(alone.rows[::-1]).pieces())
    opened.clear()
    with download.remembering() as memo:
        first = BigTable(download, "table.csv", keep=("x",))
        first.kept.loc[:, "x"] = 7.0
        memo.begin_last()
        last = BigTable(download, "table.csv", keep=("x",))
        del first
        pd.testing.assert_frame_equal(last.kept, alone.kept)
        assert b"".join(last.content(last.rows[::-1]).pieces()) == text
    assert opened == {"table.csv": 2}, "the names of the columns, and the table"
