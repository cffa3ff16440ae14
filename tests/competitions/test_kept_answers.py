"""Answers are parsed once for submissions that are graded one after the other in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from competitions import competition as competitions_module
from competitions import registry
from competitions.scoring import reading


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
    monkeypatch.setattr(competitions_module, "_KEPT", {})
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
