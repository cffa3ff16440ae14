"""Step 5: a run's submission against the answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

from common.errors import UserError
from common.progress import tell
from competitions import registry
from competitions.editions import Edition
from grading.medals import STORED, Leaderboard
from grading.report import GradedSubmission
from grading.workers.shared import shared_grader
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key, local_copy
from storage.keys import content_key
from storage.runs.folders import RunFolder
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord
from storage.store import Store
from tasks.agent_run import run_row
from tasks.wiring.figures import chosen_thresholds
from tasks.wiring.stores import local_cache

if TYPE_CHECKING:
    from grading.workers import IsolatedGrader


def grade_key(competition_id: str, run_key: str, edition: Edition, leaderboard: str = STORED) -> str:
    """The content key of a grade: the run, the grader's code, and the leaderboard if it is a fetched one."""
    other = [] if leaderboard == STORED else [leaderboard]
    return content_key(run_key, registry.get(competition_id).fingerprint("grade"), edition, *other)


def finished_grade(store: Store, run_group: str, competition_id: str, seed: int, key: str) -> GradeRecord | None:
    """The grade that is in the store under `key`; None if the run has still to be graded."""
    record = RunFolder(store, run_group, competition_id, seed).read_grade()
    # A grading that failed is our bug; it is tried again.
    return record if record is not None and record.key == key and record.outcome != "failed" else None


def _cache_key(context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    store, where = (
        Store(parameters["store"]),
        [parameters[name] for name in ("run_group", "competition_id", "seed", "key")],
    )
    return f"{context.task.name}-{where[-1]}" if finished_grade(store, *where) else None


@task(name="grade", task_run_name="grade {competition_id} seed {seed}", persist_result=True, cache_key_fn=_cache_key)
def grade(
    competition_id: str,
    seed: int,
    run_group: str,
    store: str,
    edition: Edition,
    key: str,
    leaderboard: Leaderboard = STORED,
) -> str:
    """Grade the submission that the run left; returns the outcome."""
    place = Store(store)
    folder = RunFolder(place, run_group, competition_id, seed)
    run = folder.read_run()
    if run is None:
        raise UserError(f"run {folder.name} is not finished in {place.root}: it cannot be graded")
    record, snapshots = grade_run(place, run, folder.url, edition, leaderboard)
    if record.detail:
        get_run_logger().error("%s", record.detail)
    folder.write_snapshots(snapshots)
    folder.write_grade(record.replace(key=key))
    tell(run_row(run_group, competition_id, seed), "graded", record.message or f"score {record.score}")
    return record.outcome


def grade_run(
    place: Store, run: RunRecord, source: str, edition: Edition, leaderboard: Leaderboard = STORED
) -> tuple[GradeRecord, list[SnapshotRecord]]:
    """Grade the submission of `run`, whose files are below the URL `source`, and the versions kept while it was made.

    Raises `UserError` if the competition is not prepared, or if the leaderboard to grade with was not fetched.
    """
    competition = registry.get(run.competition_id)
    thresholds = chosen_thresholds(place, competition.facts, leaderboard)
    dataset = Dataset(edition, competition.id)
    version = committed_key(place, dataset) or ""
    with (
        local_copy(place, dataset, "private", local_cache()) as prepared,
        tempfile.TemporaryDirectory(prefix="mlebench-grade-") as folder,
        shared_grader(competition, prepared, edition, version, thresholds) as grader,
    ):
        submission = Path(folder) / "submission.csv"
        if run.submission_exists:
            place.top.fs.get_file(place.top.path(place.relative(f"{source}/submission.csv")), str(submission))
        result = grader.grade(submission, f"{source}/submission.csv")
        snapshots = _grade_snapshots(place, run, source, grader)
    message = run.message or "the agent left no submission" if result.outcome == "missing" else result.message
    graded = GradedSubmission(
        report=result.report,
        outcome=result.outcome,
        message=message,
        run_group=run.run_group,
        run_id=run.run_id,
        seed=run.seed,
        agent=run.agent,
        edition=edition,
        complexity=competition.facts.complexity,
        category=competition.facts.category,
    )
    return GradeRecord(**graded.to_row(), detail=result.detail), snapshots


def _grade_snapshots(place: Store, run: RunRecord, source: str, grader: IsolatedGrader) -> list[SnapshotRecord]:
    """Grade the versions of the submission that were kept while the agent ran, by time."""
    folder = RunFolder.at(place, source)
    records = []
    for seconds, url in folder.snapshot_files() if folder else []:
        with tempfile.TemporaryDirectory(prefix="mlebench-grade-") as scratch:
            local = Path(scratch) / "submission.csv"
            place.top.fs.get_file(place.top.path(place.relative(url)), str(local))
            report = grader.grade(local, url).report
        grades = {name: getattr(report, name) for name in SnapshotRecord.model_fields if hasattr(report, name)}
        records.append(SnapshotRecord(**grades | run.who, at_seconds=seconds))
    return records


def prepared_key_of(store: Store, edition: Edition, competition_id: str) -> str:
    """The key of the dataset in the store; empty if it is not prepared (the run will then say so)."""
    return committed_key(store, Dataset(edition, competition_id)) or ""
