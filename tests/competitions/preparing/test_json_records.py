"""Lists of JSON records: whole, or the first one only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from competitions.errors import DownloadError
from competitions.preparing.download import Download
from competitions.preparing.json_records import first_record, read_records


@pytest.fixture
def download_of(tmp_path: Path) -> Callable[[str], Download]:
    def build(text: str) -> Download:
        (tmp_path / "records.json").write_text(text, "utf-8")
        return Download.open(str(tmp_path))

    return build


def test_all_records(download_of: Callable[[str], Download]) -> None:
    records = [{"id": "ä", "x": [1.5]}, {"x": [], "id": "b"}]
    assert read_records(download_of(json.dumps(records)), "records.json") == records


def test_records_with_other_fields_are_refused(download_of: Callable[[str], Download]) -> None:
    with pytest.raises(DownloadError, match="different fields"):
        read_records(download_of('[{"a": 1}, {"b": 1}]'), "records.json")


@pytest.mark.parametrize("text", ['[{"b": "}", "a": {}}, {"b"', ' [\n {"b": "}", "a": {}}]'])
def test_first_record_of_a_long_or_even_torn_file(download_of: Callable[[str], Download], text: str) -> None:
    assert list(first_record(download_of(text), "records.json")) == ["b", "a"]


def test_first_record_longer_than_a_piece(download_of: Callable[[str], Download]) -> None:
    record = {"x": ["ä"] * 400_000, "y": 1}
    assert first_record(download_of(json.dumps([record, record], ensure_ascii=False)), "records.json") == record


@pytest.mark.parametrize("text", ["", "[]", '[{"a": 1'])
def test_no_record(download_of: Callable[[str], Download], text: str) -> None:
    with pytest.raises(DownloadError, match="no record"):
        first_record(download_of(text), "records.json")
