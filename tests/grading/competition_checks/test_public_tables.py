"""The heads of public tables that are read, of files that have no lines of usual length."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions.tables.csv_blocks import MAX_HEADER
from grading.competition_checks import public_tables


def found(folder: Path) -> tuple[dict[str, int], list[str]]:
    """The number of rows of each table, and the files that were not read."""
    unread: list[str] = []
    tables = public_tables.public_tables(folder, "sample_submission.csv", unread)
    return {name: len(table) for name, table in tables}, unread


def test_a_line_as_long_as_a_file_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wide.csv").write_text("a," * MAX_HEADER)
    (tmp_path / "cut.csv").write_text("a,b\n" + "1,2\n" * 999 + "3" * 6000)
    (tmp_path / "long.jsonl").write_text('{"a": "' + "x" * 3000 + '"}\n')
    (tmp_path / "longer.jsonl").write_text('{"a": "' + "x" * 9000 + '"}\n')
    (tmp_path / "usual.jsonl").write_text('{"a": 1}\n' * 9)
    monkeypatch.setattr(public_tables, "_MAX_TABLE_BYTES", 5000)
    monkeypatch.setattr(public_tables, "_MAX_JSON_BYTES", 2000)
    tables, unread = found(tmp_path)
    assert tables == {"cut.csv": 999, "usual.jsonl": 9}
    assert unread == ["long.jsonl", "longer.jsonl", "wide.csv"]
