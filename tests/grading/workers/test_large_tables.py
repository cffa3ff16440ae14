"""Tables so large that they are read in columns, on several threads: before workers are forked, and in each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.workers import GradingLimits, GradingPool
from tests.grading.workers.odd import odd_competition

ROWS = 5000
GRADE = """
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import match
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "word"), texts="arrow")


def grade(submission, answers, edition):
    submission, answers = match(submission, answers, "id", ["word"])
    words = zip(as_strings(submission, "word").to_pylist(), as_strings(answers, "word").to_pylist(), strict=True)
    return sum(given == true for given, true in words) / len(answers)
"""


@pytest.fixture
def pool(tmp_path: Path) -> GradingPool:
    competition, prepared = odd_competition(tmp_path, GRADE, table([*map(str, range(ROWS))]))
    return GradingPool(competition, prepared, limits=GradingLimits())


def table(words: list[str]) -> str:
    return "id,word\n" + "".join(f"row {number},w{word}\n" for number, word in enumerate(words))


def test_every_worker_reads_in_columns_after_the_answers_were(pool: GradingPool, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    with pool:
        for right in (ROWS, ROWS // 2, 0):
            path.write_text(table([str(number) if number < right else "?" for number in range(ROWS)]))
            assert pool.grade(path).report.score == right / ROWS


def test_a_cell_has_a_bound_however_text_is_held(pool: GradingPool, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_text(table([*map(str, range(ROWS - 1)), "x" * 3_000_000]))
    with pool:
        grade = pool.grade(path)
    assert grade.outcome == "invalid"
    assert "a cell of column 'word' has 3,000,001 characters" in str(grade.message)
