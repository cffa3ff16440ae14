"""Answers need no column that the published graders never read: those of others may lack it."""

from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from competitions.scoring.errors import InvalidSubmission
from tests.prepared import PreparedCompetitions


@pytest.mark.parametrize(
    ("name", "unread"),
    [
        ("rsna-2022-cervical-spine-fracture-detection", ["StudyInstanceUID", "prediction_type"]),
        ("osic-pulmonary-fibrosis-progression", ["Patient", "Weeks"]),
    ],
)
def test_scores_need_only_what_the_published_grader_reads(
    name: str, unread: list[str], prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    competition, found = registry.get(name), prepared[name]
    sample = found.path / competition.facts.files.sample_submission
    answers = pd.read_csv(found.path / competition.facts.files.answers)
    fewer = tmp_path / competition.facts.files.answers
    fewer.parent.mkdir(parents=True)
    answers.drop(columns=unread).to_csv(fewer, index=False)
    assert competition.grade(sample, tmp_path) == competition.grade(sample, found.path)


def test_row_numbers_are_not_compared_one_by_one(
    prepared: PreparedCompetitions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """25,680 Python integers, twice, for two ranges of which the ends tell that they are equal."""
    found = prepared["stanford-covid-vaccine"]
    competition = found.competition
    sample = found.path / competition.facts.files.sample_submission
    shifted = tmp_path / "shifted.csv"
    header, *rows = sample.read_text().splitlines()
    shifted.write_text("\n".join([header, *(f"extra{row},{row}" for row in rows)]))
    with pytest.raises(InvalidSubmission, match="as many cells as the header"):
        competition.grade(shifted, found.path)

    def refused(_: object) -> None:
        raise AssertionError("a range as numbers")

    monkeypatch.setattr(pd.RangeIndex, "__iter__", refused)
    competition.grade(sample, found.path)
