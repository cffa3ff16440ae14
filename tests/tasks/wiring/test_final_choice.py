"""Runs with feedback are graded by the private part: the better file of the final choice counts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from grading.workers.parts import public_units
from storage.runs.files import public_score_file
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord
from tasks.grading import grade_submission
from tests.flows.graded import dataset, run_record
from tests.stores import Store, copy_dataset

__all__ = ["dataset"]


class Run:
    """The record and the files of a run with feedback on diabetes; files by their errors on public and private rows."""

    def __init__(self, store: Store, dataset: Path) -> None:
        copy_dataset(store, "diabetes", dataset)
        self.store, self.source = store, store.run("g", "diabetes", 0)
        self.gold = pd.read_csv(dataset / registry.get("diabetes").facts.files.gold_submission)
        self.public = public_units(self.gold["id"].astype(str).tolist(), "diabetes")
        self.lines: list[dict[str, Any]] = []
        feedback = {"feedback": 0.3, "feedback_id": "id", "run_group": "g"}
        self.record = RunRecord(**run_record(0, True) | feedback)

    def content(self, public: float, private: float) -> bytes:
        errors = np.where(self.public, public, private)
        return self.gold.assign(progression=self.gold["progression"] + errors).to_csv(index=False).encode()

    def write(self, path: str, public: float, private: float) -> None:
        self.store.write(f"{self.source}/{path}", self.content(public, private))

    def ask(self, public: float, private: float) -> None:
        """A file that the agent asked a score for."""
        number = len(self.lines) + 1
        self.write(public_score_file(number), public, private)
        digest = hashlib.sha256(self.content(public, private)).hexdigest()
        line = {"number": number, "time": f"2026-01-01T00:00:{10 * number}+00:00", "sha256": digest}
        self.lines.append({**line, "score": public, "standard_error": 1.0, "told": 9.0})
        self.store.write(
            f"{self.source}/public_scores.jsonl", "".join(json.dumps(x) + "\n" for x in self.lines).encode()
        )

    def grade(self, **fields: Any) -> tuple[GradeRecord, list[SnapshotRecord]]:
        return grade_submission(self.store, self.record.replace(**fields), self.source, "v1")


@pytest.fixture
def run(store: Store, dataset: Path) -> Run:
    """Of three files, the second is the best on private rows, the third on public ones; the submission is another."""
    made = Run(store, dataset)
    for public, private in ((9, 9), (7, 5), (3, 8)):
        made.ask(public, private)
    made.write("submission.csv", 20, 20)
    return made


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
