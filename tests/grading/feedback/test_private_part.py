"""Grades by the private part: what the agent was told does not count, and what it writes moves no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from grading.feedback.private_part import PrivateGrade, PrivatePart
from grading.workers import GradingPool
from grading.workers.parts import Parts, public_units
from tests.prepared import PreparedCompetitions


@pytest.fixture(scope="module")
def pool(prepared: PreparedCompetitions) -> Iterator[GradingPool]:
    subject = prepared["diabetes"]
    with GradingPool(subject.competition, subject.path) as pool:
        yield pool


@pytest.fixture
def gold(pool: GradingPool) -> pd.DataFrame:
    return pd.read_csv(pool.prepared / pool.competition.facts.files.gold_submission)


def graded(pool: GradingPool, table: pd.DataFrame, folder: Path) -> PrivateGrade:
    table.to_csv(folder / "file.csv", index=False)
    return PrivatePart(pool, 0.3, "id").grade(folder / "file.csv", "store/file.csv")


def test_the_score_is_that_on_private_rows(pool: GradingPool, gold: pd.DataFrame, tmp_path: Path) -> None:
    public = public_units(gold["id"].astype(str).tolist(), "diabetes", 0.3)
    found = graded(pool, gold.assign(progression=gold["progression"] + np.where(public, 10, 2)), tmp_path)
    assert (found.grade.outcome, found.grade.report.score) == ("valid", 2.0)
    assert found.public_score == pytest.approx(10)
    assert found.score_with_public_rows == pytest.approx(float(np.sqrt(np.where(public, 100, 4).mean())), abs=1e-5)
    report = found.grade.report
    assert (report.submission_path, report.feedback, report.gold_medal) == ("store/file.csv", 0.3, True)


def test_further_columns_and_the_order_of_rows_change_nothing(
    pool: GradingPool, gold: pd.DataFrame, tmp_path: Path
) -> None:
    table = gold.assign(progression=gold["progression"] + np.arange(len(gold)))
    before = graded(pool, table, tmp_path)
    changed = table.assign(row=range(len(table))).iloc[::-1]
    after = graded(pool, changed, tmp_path)
    assert after.grade.report.score == before.grade.report.score
    assert after.public_score == pytest.approx(before.public_score)


@pytest.mark.parametrize("value", ["", "nan", "x"])
def test_what_is_invalid_on_public_rows_is_invalid(
    pool: GradingPool, gold: pd.DataFrame, tmp_path: Path, value: str
) -> None:
    table = gold.astype({"progression": str})
    table.loc[np.flatnonzero(public_units(gold["id"].astype(str).tolist(), "diabetes"))[0], "progression"] = value
    found = graded(pool, table, tmp_path)
    assert found.grade.outcome == "invalid"
    assert (found.grade.report.score, found.grade.report.valid_submission) == (None, False)


def test_a_file_that_is_missing_is_missing(pool: GradingPool, tmp_path: Path) -> None:
    found = PrivatePart(pool, 0.3, "id").grade(tmp_path / "file.csv", "store/file.csv")
    assert (found.grade.outcome, found.grade.report.submission_path) == ("missing", "store/file.csv")


@pytest.mark.parametrize(("of_gold", "outcome"), [(True, "invalid"), (False, "failed")])
def test_a_file_without_a_private_score_is_invalid_unless_the_right_answers_have_none_either(
    pool: GradingPool,
    gold: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_gold: bool,
    outcome: str,
) -> None:
    """It may have one class only, for example; nothing else may count against an agent."""
    real = pool.parts

    def parts(path: Path, *options: Any, **more: Any) -> tuple[Any, Parts]:
        grade, found = real(path, *options, **more)
        assert found is not None
        if path.name == "file.csv" or not of_gold:
            found = Parts(found.public, None, "id", "the private part cannot be scored: only one class")
        return grade, found

    monkeypatch.setattr(pool, "parts", parts)
    found = graded(pool, gold, tmp_path)
    assert (found.grade.outcome, found.grade.report.score, found.public_score) == (outcome, None, 0.0)
    expected = (
        "there is no score on the private part of the test set: the private part cannot be scored: only one class"
    )
    assert found.grade.message == expected


def test_a_score_that_is_no_number_is_invalid(pool: GradingPool, gold: pd.DataFrame, tmp_path: Path) -> None:
    found = graded(pool, gold.assign(progression=1e200), tmp_path)  # its square is infinite
    assert (found.grade.outcome, found.score_with_public_rows) == ("invalid", None)
    assert found.grade.message == "there is no score on the private part of the test set: the score on all rows is inf"
