"""The interface `mlebench` gives what the published package gave: the report of each recorded submission, the score of
frames, and validity, where a grader that died counts as a rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from grading import InvalidSubmission
from grading.medals import Thresholds
from grading.report import competition_report
from mlebench.grade import grade_csv
from mlebench.registry import Competition, registry
from mlebench.utils import load_answers, read_csv
from tests.parity.test_every_competition import SHAPES
from tests.parity.test_parity import COMPETITIONS, agrees
from tests.prepared import Prepared, PreparedCompetitions

SOME_SLOW = [pytest.param(name, marks=[] if name in SHAPES else [pytest.mark.slow]) for name in COMPETITIONS]
"""All, of which `make test` tries one of each shape: grading processes of each competition take a second to start."""


def in_data_directory(subject: Prepared, folder: Path) -> Competition:
    """The competition in a data directory of the published layout."""
    (folder / subject.competition.id).mkdir()
    (folder / subject.competition.id / "prepared").symlink_to(subject.path, target_is_directory=True)
    return registry.set_data_dir(folder).get_competition(subject.competition.id)


@pytest.mark.parametrize("competition_id", SOME_SLOW)
def test_reports_are_the_published_ones(competition_id: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    subject = prepared[competition_id]
    competition, thresholds = in_data_directory(subject, tmp_path), Thresholds.of(subject.competition.facts)
    for name, recorded in subject.expected["scores"].items():
        path = subject.submission(name)
        report = grade_csv(path, competition)
        expected = competition_report(
            competition_id,
            recorded["score"] if recorded["error"] is None else None,
            thresholds,
            submission_path=str(path),
            submission_exists=True,
            created_at=report.created_at,
        ).model_dump(exclude={"leaderboard"})
        for field, value in expected.items():
            assert str(getattr(report, field)) == str(value), (name, field)  # as texts, NaN equals NaN


@pytest.mark.parametrize("competition_id", COMPETITIONS)
def test_frames_have_the_published_scores(competition_id: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    subject = prepared[competition_id]
    competition = in_data_directory(subject, tmp_path)
    answers = load_answers(competition.answers)
    differing = {}
    for name, recorded in subject.expected["scores"].items():
        try:
            score: float | str = competition.grader.grade_fn(read_csv(subject.submission(name)), answers)
        except InvalidSubmission:
            score = "rejected"
        if not agrees(score, recorded, subject.expected["absolute_tolerance"]):
            differing[name] = (score, recorded)
    assert not differing


OTHERWISE_MADE: dict[str, tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "rows numbered otherwise": ("stanford-covid-vaccine", lambda frame: frame.set_index(frame.index[::-1])),
    "strings": ("text-normalization-challenge-english-language", lambda frame: frame.convert_dtypes()),
    "categories": ("tensorflow2-question-answering", lambda frame: frame.astype("category")),
}


@pytest.mark.parametrize("form", OTHERWISE_MADE)
def test_frames_of_programs_are_graded_like_the_files_that_they_would_write(
    form: str, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    competition_id, made = OTHERWISE_MADE[form]
    subject = prepared[competition_id]
    competition = in_data_directory(subject, tmp_path)
    answers = load_answers(competition.answers)
    score = competition.grader.grade_fn
    for name, recorded in subject.expected["scores"].items():
        if recorded["error"] is None:
            frame = read_csv(subject.submission(name))
            assert score(made(frame), answers) == pytest.approx(score(frame, answers), nan_ok=True), name
