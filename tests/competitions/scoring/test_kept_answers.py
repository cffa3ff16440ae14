"""Parsed answers are kept as Arrow files: the same frames, without parsing, and never a wrong one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions.scoring import kept_answers
from competitions.scoring.reading import Reads, read_answers
from competitions.tables import columns

ROW = '{n},0.30000000000000004,{odd},True,"a, ""b""",{n}.5\n'


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """A table of 20,000 rows with numbers, missing values, booleans and texts."""
    rows = "".join(ROW.format(n=n, odd="" if n % 3 else "é") for n in range(20_000))
    path = tmp_path / "answers.csv"
    path.write_text("id,exact,text,flag,quoted,half\n" + rows, "utf-8")
    assert path.stat().st_size > kept_answers.WORTH
    return path


def _no_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the answers are parsed")

    monkeypatch.setattr(columns, "read_table", refuse)


@pytest.mark.parametrize("texts", ["object", "arrow"])
@pytest.mark.parametrize("wanted", [None, ("id", "text", "half")])
def test_kept_answers_are_those_that_were_parsed(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Any, wanted: tuple[str, ...] | None
) -> None:
    reads, kept = Reads(wanted, texts), tmp_path / "kept/answers.arrow"
    parsed = read_answers(answers, reads=reads)
    pd.testing.assert_frame_equal(read_answers(answers, reads=reads, kept=kept), parsed)
    _no_parsing(monkeypatch)
    again = read_answers(answers, reads=reads, kept=kept)
    pd.testing.assert_frame_equal(again, parsed)
    again["half"] = again["half"].to_numpy() + 1  # graders may write to their columns
    again["id"].to_numpy()[:] = 0
    pd.testing.assert_frame_equal(read_answers(answers, reads=reads, kept=kept), parsed)


def test_only_the_owner_can_read_them(answers: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept/answers.arrow"
    before = os.umask(0)
    try:
        read_answers(answers, kept=kept)
    finally:
        os.umask(before)
    assert [path.name for path in kept.parent.iterdir()] == [kept.name], "no draft is left"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_a_damaged_file_is_replaced(answers: Path, tmp_path: Path) -> None:
    kept = tmp_path / "answers.arrow"
    parsed = read_answers(answers, kept=kept)
    whole = kept.read_bytes()
    for damaged in (b"", b"ARROW1", whole[: len(whole) // 2]):
        kept.write_bytes(damaged)
        pd.testing.assert_frame_equal(read_answers(answers, kept=kept), parsed)
        assert kept.read_bytes() == whole


def test_those_of_another_file_are_not_taken(answers: Path, tmp_path: Path) -> None:
    kept = tmp_path / "answers.arrow"
    read_answers(answers, kept=kept)
    text, before = answers.read_text("utf-8"), answers.stat()
    answers.write_text(text.replace("\n1,", "\n7,"), "utf-8")
    os.utime(answers, ns=(0, before.st_mtime_ns + 1))
    assert read_answers(answers, kept=kept)["id"][1] == 7
    answers.write_text(text.replace("\n1,", "\n77,"), "utf-8")
    os.utime(answers, ns=(0, before.st_mtime_ns + 1))
    assert read_answers(answers, kept=kept)["id"][1] == 77


def test_answers_are_read_where_nothing_can_be_kept(answers: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(read_answers(answers, kept=tmp_path / "file/answers.arrow")) == 20_000


def test_small_and_unusual_answers_are_not_kept(answers: Path, tmp_path: Path) -> None:
    kept, small = tmp_path / "kept/answers.arrow", tmp_path / "small.csv"
    small.write_text("id,label\n1,2\n")
    assert read_answers(small, kept=kept)["label"].tolist() == [2]
    answers.write_text(answers.read_text("utf-8") + "\n \n", "utf-8")  # which only pandas is known to read right
    assert len(read_answers(answers, kept=kept)) == len(pd.read_csv(answers))
    assert not kept.exists()


def test_the_least_recently_used_make_room(answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"kept/{name}.arrow" for name in "abc"]
    for age, path in zip((30, 20), paths, strict=False):
        read_answers(answers, kept=path)
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    read_answers(answers, kept=paths[0])  # the oldest is used again
    monkeypatch.setattr(kept_answers, "MOST", 2 * paths[0].stat().st_size)
    read_answers(answers, kept=paths[2])
    assert [path.exists() for path in paths] == [True, False, True]
