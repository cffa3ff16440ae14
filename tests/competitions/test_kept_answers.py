"""Answers are parsed once for submissions that are graded one after the other in one process."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from competitions import competition as competitions_module
from competitions import registry
from competitions.scoring import reading
from competitions.scoring.errors import InvalidSubmission


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "test.csv").write_text("PassengerId,Transported\na,True\nb,False\n")
    (tmp_path / "submission.csv").write_text("PassengerId,Transported\nb,False\na,True\n")
    os.utime(tmp_path / "private" / "test.csv", ns=(1, 1))
    return tmp_path


def test_the_answers_are_read_again_only_if_their_file_is_another(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(competitions_module, "_CACHED_ANSWERS", {})
    read: list[Path] = []
    original = reading.read_answers

    def counted(path: Path, **options: Any) -> Any:
        read.append(path)
        return original(path, **options)

    monkeypatch.setattr(reading, "read_answers", counted)
    titanic, answers = registry.get("spaceship-titanic"), prepared / "private" / "test.csv"
    for _ in range(3):
        assert titanic.grade(prepared / "submission.csv", prepared) == 1.0
    assert len(read) == 1
    answers.write_text("PassengerId,Transported\na,False\nb,False\n")
    for _ in range(2):  # too young to be told from a later change
        assert titanic.grade(prepared / "submission.csv", prepared) == 0.5
    assert len(read) == 3


class TestReadDuringTheSubmission:
    """Large answers are read in a thread, while the submission is."""

    @pytest.fixture(autouse=True)
    def all_answers_are_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(competitions_module, "_MIN_PARALLEL_BYTES", 0)
        monkeypatch.setattr(competitions_module, "_CACHED_ANSWERS", {})

    def test_the_score_is_the_same(self, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        threads: set[str] = set()
        original = reading.read_answers

        def noted(path: Path, **options: Any) -> Any:
            threads.add(threading.current_thread().name)
            return original(path, **options)

        monkeypatch.setattr(reading, "read_answers", noted)
        assert registry.get("spaceship-titanic").grade(prepared / "submission.csv", prepared) == 1.0
        assert len(threads) == 1
        assert threads != {threading.current_thread().name}

    def test_where_no_thread_can_be_started_they_are_read_afterwards(
        self, prepared: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: Any) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
        assert registry.get("spaceship-titanic").grade(prepared / "submission.csv", prepared) == 1.0

    def test_a_submission_is_refused_as_without_a_thread(self, prepared: Path) -> None:
        (prepared / "submission.csv").write_bytes(b"PassengerId,Transported\n\xff,True\n")
        with pytest.raises(InvalidSubmission, match="is not UTF-8"):
            registry.get("spaceship-titanic").grade(prepared / "submission.csv", prepared)

    def test_an_error_of_the_answers_comes_before_one_of_the_submission(self, prepared: Path) -> None:
        (prepared / "submission.csv").unlink()
        (prepared / "private" / "test.csv").write_bytes(b"PassengerId,Transported\n\xff,True\n")
        with pytest.raises(UnicodeDecodeError):
            registry.get("spaceship-titanic").grade(prepared / "submission.csv", prepared)
