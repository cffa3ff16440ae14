"""Scores on halves of the test set: for every competition, of units that belong together, whatever a grader does."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.facts import Resampling
from grading.workers import GradingLimits, GradingPool
from grading.workers.halves import score_halves
from tests.grading.workers.conftest import made
from tests.prepared import PreparedCompetitions

__all__ = ["made"]
ANSWERS = pd.DataFrame({"id": range(100), "value": np.arange(100) % 7.0, "patient": np.arange(100) // 5})
RIGHT = ANSWERS[["id", "value"]]


def mean_error(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    assert submission["id"].tolist() == answers["id"].tolist()
    return float((submission["value"] - answers["value"]).abs().mean())


@pytest.mark.parametrize("competition_id", registry.list())
def test_every_competition_is_cut_or_says_why(competition_id: str, prepared: PreparedCompetitions) -> None:
    """A miniature may have too few patients; the real test sets do not."""
    subject = prepared[competition_id]
    competition = subject.competition
    table = competition.read_submission(subject.path / competition.facts.files.sample_submission)
    whole = competition.score_table(table.copy(), competition.answers(subject.path))
    found = score_halves(
        competition.score_table, table, subject.answers, competition.facts.resampling, whole=whole, draws=25
    )
    how = competition.facts.resampling
    if how is not None and how.unknown:
        assert found.message == how.unknown
    elif found.message and "sample-scores-nan" not in competition.facts.oddities:
        few = found.units < 5 and found.message.startswith("the test set has only")
        assert few or (found.units < 20 and "cannot be scored" in found.message), found.message
    assert found.message or len(found.scores) >= 20


@pytest.mark.parametrize(
    ("competition_id", "row", "unit"),
    [
        ("denoising-dirty-documents", "202_1_2", "202"),
        ("mlsp-2013-birds", "5", ""),
        ("mlsp-2013-birds", "18", ""),
        ("mlsp-2013-birds", "100", "1"),
        ("mlsp-2013-birds", "32118", "321"),
        ("rsna-breast-cancer-detection", "22808_L", "22808"),
        ("smartphone-decimeter-2022", "2021-03-09-US-MTV-1-GooglePixel4", "2021-03-09-US-MTV-1"),
        ("spaceship-titanic", "0013_01", "0013"),
        ("stanford-covid-vaccine", "id_a770ca135_12", "id_a770ca135"),
        ("tensorflow2-question-answering", "-8232_long", "-8232"),
        ("text-normalization-challenge-english-language", "12_3", "12"),
        ("the-icml-2013-whale-challenge-right-whale-redux", "20090330_000011_011s8ms_Test", "20090330"),
        ("uw-madison-gi-tract-image-segmentation", "case49_day36_slice_0001", "case49"),
    ],
)
def test_rows_of_a_patient_a_drive_or_a_page_are_one_unit(competition_id: str, row: str, unit: str) -> None:
    """Each is what was drawn when the test set was chosen, so its rows are no independent evidence."""
    how = registry.get(competition_id).facts.resampling
    assert how is not None
    assert how.pattern is not None
    assert pd.Series([row]).str.extract(how.pattern, expand=False)[0] == unit


@pytest.mark.parametrize(
    "competition_id",
    ["3d-object-detection-for-autonomous-vehicles", "iwildcam-2019-fgvc6", "iwildcam-2020-fgvc7"],
)
def test_units_that_the_answers_do_not_name_are_not_replaced_by_rows(competition_id: str) -> None:
    how = registry.get(competition_id).facts.resampling
    found = score_halves(mean_error, RIGHT, ANSWERS, how, whole=0.0)
    assert found.scores == []
    assert "belong together" in str(found.message)


def test_units_are_drawn_as_wholes() -> None:
    seen: list[pd.DataFrame] = []

    def score(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        seen.append(answers)
        return mean_error(submission, answers)

    how = Resampling(column="patient")
    found = score_halves(score, RIGHT, ANSWERS, how, whole=0.0, draws=30)
    assert (found.units, found.drawn, len(found.scores)) == (20, 10, 30)
    assert all(set(half["patient"].value_counts()) == {5} for half in seen)
    assert {half["patient"].nunique() for half in seen[1:]} == {10}
    rows = score_halves(mean_error, RIGHT, ANSWERS, None, whole=0.0, draws=30)
    assert (rows.units, rows.drawn) == (100, 50)


def test_the_order_of_a_submission_and_its_other_columns_do_not_matter() -> None:
    noisy = RIGHT.assign(value=RIGHT["value"] + np.arange(100) % 3)
    whole = mean_error(noisy, ANSWERS)

    def by_id(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        return mean_error(submission.sort_values("id", ignore_index=True), answers)

    first = score_halves(by_id, noisy, ANSWERS, None, whole=whole)
    mixed = noisy.sample(frac=1, random_state=1).assign(note="x", patient=1)
    assert score_halves(by_id, mixed, ANSWERS, None, whole=whole).scores == first.scores


@pytest.mark.parametrize(
    ("submission", "answers", "says"),
    [
        (RIGHT.head(4), ANSWERS.head(4), "only 4 units"),
        (RIGHT.rename(columns={"id": "row"}), ANSWERS, "no column of ids"),
        ([1, 2], ANSWERS, "no table"),
        (RIGHT, {"a": 1}, "no table"),
    ],
)
def test_what_cannot_be_cut_says_why(submission: Any, answers: Any, says: str) -> None:
    found = score_halves(mean_error, submission, answers, None, whole=0.0)
    assert found.scores == []
    assert says in str(found.message)


def test_scores_that_halves_do_not_have_are_named() -> None:
    def picky(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        if len(answers) < len(ANSWERS):
            raise ValueError("only one class")
        return 0.0

    found = score_halves(picky, RIGHT, ANSWERS, None, whole=0.0, draws=40)
    assert "40 of 40 halves cannot be scored: ValueError: only one class" in str(found.message)
    by_position = score_halves(lambda s, a: 1.0, RIGHT, ANSWERS, None, whole=0.0)
    assert "not a function of rows" in str(by_position.message)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        now[0] += 0.1
        return 0.5

    assert 20 <= len(score_halves(slow, RIGHT, ANSWERS, None, whole=0.5, seconds=5).scores) <= 50
    assert "too long" in str(score_halves(slow, RIGHT, ANSWERS, None, whole=0.5, seconds=0.5).message)


class TestInWorkers:
    def test_as_in_this_process(self, prepared: PreparedCompetitions) -> None:
        subject = prepared["diabetes"]
        path = subject.path / subject.competition.facts.files.sample_submission
        with GradingPool(subject.competition, subject.path) as grader:
            grade, found = grader.halves(path, draws=25)
            assert grade.report.score == grader.grade(path).report.score
        assert found is not None
        table = subject.competition.read_submission(path)
        whole = subject.competition.score_table(table, subject.answers)
        want = score_halves(subject.competition.score_table, table, subject.answers, None, whole=whole, draws=25)
        assert found.scores == pytest.approx(want.scores)
        assert (found.units, found.drawn) == (want.units, want.drawn)

    @pytest.mark.parametrize(("order", "says"), [("os.abort()", "memory"), ("bytearray(1 << 40)", "MemoryError")])
    def test_a_worker_that_ends_on_halves_leaves_the_grade(self, made: Any, order: str, says: str) -> None:
        """Scoring all rows works; scoring fewer ends the process or needs a terabyte."""
        competition, folder = made
        code = (
            f"import os\ndef grade(submission, answers, edition):\n    if len(answers) < 8: {order}\n    return 0.25\n"
        )
        (competition.folder / "grade.py").write_text(code)
        (folder / competition.facts.files.answers).write_text("id\n" + "\n".join(map(str, range(8))) + "\n")
        path = folder / "s.csv"
        path.write_text("id\n" + "\n".join(map(str, range(8))) + "\n")
        with GradingPool(competition, folder, limits=GradingLimits(memory_bytes=1 << 28)) as grader:
            grade, found = grader.halves(path)
            assert (grade.outcome, grade.report.score) == ("valid", 0.25)
            assert found is not None
            assert found.scores == []
            assert says in str(found.message)
            assert grader.grade(path).report.score == 0.25

    def test_without_a_score_there_are_no_halves(self, made: Any) -> None:
        competition, folder = made
        with GradingPool(competition, folder) as grader:
            grade, found = grader.halves(folder / "none.csv")
        assert (grade.outcome, found) == ("missing", None)
