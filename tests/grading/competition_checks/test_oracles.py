"""Attempts to learn the answers from what the validation service says, and when."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.checks import validity
from grading.competition_checks.subject import Subject
from grading.workers import GradingPool
from sandbox.validation.service import answer_time
from tasks.wiring.services import grader_verdict
from tests.prepared import PreparedCompetitions

ORACLES = [
    ("freesound-audio-tagging-2019", "v1"),
    ("jigsaw-toxic-comment-classification-challenge", "v1"),
    ("stanford-covid-vaccine", "v1"),
]
"""Competitions whose grading is valid or not by the answers, as published. What v2 requires of every number ends it."""


@pytest.mark.parametrize(("competition_id", "edition"), ORACLES)
def test_asking_which_rows_are_scored(
    competition_id: str, edition: str, prepared: PreparedCompetitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a check of its own, each of these tells. tests/parity/test_every_competition.py asks all with theirs."""
    found = prepared.get(competition_id, edition)  # type: ignore[arg-type]

    def problems() -> list[str]:
        return validity(Subject(found.competition, found.path, edition))  # type: ignore[arg-type]

    assert problems() == []
    monkeypatch.delattr(found.competition.module("grade"), "check")
    assert problems()


def test_a_bad_box_where_the_truth_has_its_class(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    found = prepared["3d-object-detection-for-autonomous-vehicles"]
    gold = pd.read_csv(found.path / found.competition.facts.files.gold_submission)
    cells = gold["PredictionString"].fillna("").str.split()
    labels = {cell[at] for cell in cells for at in range(8, len(cell), 9)} | {"unicorn"}
    path, said = tmp_path / "submission.csv", set()
    with GradingPool(registry.get(found.competition.id), found.path, "v1", validating=True) as grader:
        for label in sorted(labels):
            for row in range(len(gold)):
                table = gold.copy()
                table.loc[row, "PredictionString"] = f"0.5 1 2 3 -4 -5 -6 0 {label}"
                table.to_csv(path, index=False)
                verdict = grader_verdict(grader, path)
                said.add((verdict.outcome, verdict.message))
        assert len(said) == 1
        assert said.pop()[0] == "invalid"
        gold.to_csv(path, index=False)
        assert grader_verdict(grader, path).outcome == "valid"
        assert pd.isna(grader.grade(path).report.score)


def test_leaving_out_an_image_tells_how_many_boxes_it_has(prepared: PreparedCompetitions) -> None:
    found = prepared["vinbigdata-chest-xray-abnormalities-detection"]
    gold = pd.read_csv(found.path / found.competition.facts.files.gold_submission, dtype=str)
    boxes = found.answers["image_id"].value_counts()
    most = boxes.index[0]
    assert boxes.iloc[0] > 1
    with pytest.raises(InvalidSubmission, match=f": 1 missing .such as '{most}'"):
        found.competition.check_table(gold[gold["image_id"] != most], found.answers, "v1")


def test_measuring_how_long_a_check_takes() -> None:
    """In a whole day of validations there are few answers: their times are powers of two."""
    times = {answer_time(hundredths / 100) for hundredths in range(120_000)}
    assert times == {0.5 * 2**power for power in range(13)}
