"""Measures how much the scores of a run group depend on the choice of test rows."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.causes import explain
from common.errors import UserError
from competitions import registry
from grading.medals import Thresholds
from grading.statistics.split_noise import split_noise
from grading.workers.halves import DRAWS, SECONDS, Halves
from storage.datasets.local_copy import local_copy
from storage.runs.folders import StoredRun, runs_of
from storage.runs.records import GradeRecord
from storage.store import Store
from storage.tables import write_table
from tasks.wiring.context import local_cache
from tasks.wiring.grades import dataset_for, process_graders


def measure_split_noise(
    store: Store, run_group: str, draws: int = DRAWS, seconds: float = SECONDS
) -> Iterator[dict[str, Any]]:
    """Score each valid submission of a group on halves of its test set; writes tables/split_noise at the end.

    Yields the rows of the table. A run that cannot be measured has a row that says why. Raises `UserError` if the group
    has no runs.
    """
    rows = []
    for run in runs_of(store, run_group):
        for grade in run.folder.read_grades():
            if grade.valid_submission:
                rows.append(_row(store, run, grade, draws, seconds))
                yield rows[-1]
    write_table(store, "split_noise", run_group, rows)


def _row(store: Store, run: StoredRun, grade: GradeRecord, draws: int, seconds: float) -> dict[str, Any]:
    row = {**run.record.who, "edition": grade.edition, "score": grade.score}
    del row["run_group"]
    try:
        halves = _halves(store, run, grade, draws, seconds)
    except UserError as error:  # the dataset is at fault; the other runs are measured
        return {**row, "message": explain(error)}
    if not halves.scores or grade.score is None:
        return {**row, "units": halves.units, "halves": 0, "message": halves.message or "the score is not a number"}
    figures = split_noise(grade.score, halves.scores, halves.units, halves.drawn, _thresholds(grade))
    return {**row, **figures, "units": halves.units, "halves": len(halves.scores)}


def _thresholds(grade: GradeRecord) -> Thresholds:
    """The thresholds that the submission was graded with."""
    limits = (grade.gold_threshold, grade.silver_threshold, grade.bronze_threshold, grade.median_threshold)
    gold, silver, bronze, median = (math.nan if limit is None else limit for limit in limits)
    return Thresholds(gold, silver, bronze, median, teams=0, lower_is_better=grade.is_lower_better)


def _halves(store: Store, run: StoredRun, grade: GradeRecord, draws: int, seconds: float) -> Halves:
    """The scores of a run's submission on halves of the test set that it was graded with."""
    if grade.feedback is not None:
        return Halves(message="the run had feedback, and its score is that on the private part alone")
    competition = registry.get(run.record.competition_id)
    dataset = dataset_for(store, run.record, grade.edition)
    with (
        local_copy(store, dataset, "private", local_cache()) as prepared,
        tempfile.TemporaryDirectory(prefix="mlebench-noise-") as folder,
        process_graders().grader(competition, prepared, grade.edition, dataset.key or "") as grader,
    ):
        submission = Path(folder) / "submission.csv"
        store.top.fs.get_file(store.top.path(store.relative(f"{run.source}/submission.csv")), str(submission))
        regraded, halves = grader.halves(submission, draws, seconds)
    if regraded.report.score != grade.score:
        return Halves(message=f"graded again, the score is {regraded.report.score}; regrade the group first")
    return halves or Halves(message="the score is not a finite number")
