"""Runs with feedback are graded by the private part: the better file of the final choice counts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.feedback_runs import FeedbackRun as Run
from tests.flows.graded import dataset
from tests.stores import Store

__all__ = ["dataset"]


@pytest.fixture
def run(store: Store, dataset: Path) -> Run:
    return Run(store, dataset)


def test_the_better_private_score_of_the_final_choice_counts(run: Run) -> None:
    grade, files = run.grade(final=["3", "2"])
    assert (grade.outcome, grade.score, grade.public_score, grade.feedback) == ("valid", 5.0, 7.0, 0.3)
    whole = float(np.sqrt(np.where(run.public, 49, 25).mean()))
    assert grade.score_with_public_rows == pytest.approx(whole, abs=1e-5)
    assert str(grade.submission_path).endswith("runs/g/diabetes/0/public_scores/2.csv")
    assert (grade.gold_medal, grade.message) == (True, None)
    assert grade.dense_reward == 1.0
    rows = [(each.submission, each.at_seconds, each.score, each.public_score, each.told, each.chosen) for each in files]
    assert rows == [(1, 10, 9, 9, 9, False), (2, 20, 5, 7, 9, True), (3, 30, 8, 3, 9, True)]


def test_without_a_choice_the_submission_counts(run: Run) -> None:
    grade, files = run.grade()
    assert (grade.score, grade.public_score) == (20.0, 20.0)
    assert [each.chosen for each in files] == [False] * 3


def test_a_file_is_chosen_twice_as_if_once_and_beside_the_submission(run: Run) -> None:
    assert run.grade(final=["3", "3"])[0].score == 8.0
    assert run.grade(final=["submission.csv", "1"])[0].score == 9.0


def test_timed_snapshots_are_private_as_well_and_have_no_number(run: Run) -> None:
    run.write("snapshots/15.000.csv", 1, 4)
    _, files = run.grade()
    assert [(each.at_seconds, each.score, each.submission) for each in files][:3] == [
        (10, 9, 1),
        (15, 4, None),
        (20, 5, 2),
    ]


def test_without_feedback_nothing_is_different(run: Run) -> None:
    run.write("snapshots/15.000.csv", 1, 4)
    grade, files = run.grade(feedback=None, feedback_id=None)
    assert grade.score == 20.0
    assert not {"feedback", "public_score", "score_with_public_rows"} & set(grade.to_json())
    assert [set(each.to_json()) & {"submission", "public_score", "told", "chosen"} for each in files] == [set()]


@pytest.mark.parametrize(
    ("harm", "final", "outcome", "score", "says"),
    [
        ("remove", ["2"], "failed", None, "public_scores/2.csv is missing in the folder of the run"),
        ("remove", ["2", "3"], "valid", 8.0, "submission 2 of the final choice does not count: public_scores/2.csv is"),
        ("change", ["2"], "failed", None, "public_scores/2.csv was changed: its SHA-256 is not that in public_scores."),
        ("break", ["2"], "invalid", None, "The submission lacks column `progression`"),
        ("break", ["2", "1"], "valid", 9.0, "submission 2 of the final choice does not count: "),
        ("nothing", ["7"], "failed", None, "public_scores.jsonl has no submission 7"),
        ("no submission", ["submission.csv"], "missing", None, "the agent left no submission"),
        ("no submission", ["submission.csv", "1"], "valid", 9.0, "submission.csv of the final choice does not count"),
    ],
)
def test_files_that_do_not_count(
    run: Run, harm: str, final: list[str], outcome: str, score: float | None, says: str
) -> None:
    path, fields = run.store.local("runs", "g", "diabetes", 0), {}
    if harm == "remove":
        (path / "public_scores" / "2.csv").unlink()
    elif harm == "change":
        run.write("public_scores/2.csv", 0, 0)
    elif harm == "break":
        content = b"id\n1\n"
        (path / "public_scores" / "2.csv").write_bytes(content)
        run.lines[1]["sha256"] = hashlib.sha256(content).hexdigest()
        (path / "public_scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in run.lines))
    elif harm == "no submission":
        (path / "submission.csv").unlink()
        fields = {"submission_exists": False}
    grade, files = run.grade(final=final, **fields)
    assert (grade.outcome, grade.score) == (outcome, score)
    assert says in str(grade.message)
    assert len(files) == 3, "each is told"


def test_a_lost_run_has_no_grade(run: Run) -> None:
    assert run.grade(status="lost")[0].outcome == "failed"


def test_rows_are_not_divided_by_what_the_agent_wrote(run: Run) -> None:
    """Without the column of ids, it would be found in the submission."""
    grade, files = run.grade(feedback_id=None)
    assert (grade.outcome, grade.score, files) == ("failed", None, [])
    assert grade.message == "the record of the run has feedback, but no feedback_id"


def test_no_public_score_was_asked_for(run: Run) -> None:
    (run.store.local("runs", "g", "diabetes", 0) / "public_scores.jsonl").unlink()
    grade, files = run.grade()
    assert (grade.score, files) == (20.0, [])
