"""Step 5: grade a run's submission against the answers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from common import progress
from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from competitions.editions import VERSIONS, Edition
from grading.feedback.private_part import PrivatePart
from grading.grade import Grade, grade_of
from grading.medals import STORED, Leaderboard, dense_reward
from grading.report import GradedSubmission
from grading.words import score_and_medal
from storage.datasets.local_copy import local_copy
from storage.runs.evidence.signatures import sign_record, snapshots_hash
from storage.runs.files import SUBMISSION
from storage.runs.folders import RunFolder, StoredRun
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord
from storage.store import Store
from tasks.wiring.context import local_cache, open_store
from tasks.wiring.final_choice import grade_final_choice
from tasks.wiring.grades import chosen_thresholds, dataset_for, grade_key, graded_folder, process_graders
from tasks.wiring.requests import GradeRequest


def grade_run(request: GradeRequest) -> GradeRecord:
    """Grade the submission of a run and its snapshots, and write them to the run's folder; returns the grade record.

    Raises `UserError` if the run is not finished, and in the cases of `grade_submission`.
    """
    store = open_store(request.store)
    folder = graded_folder(store, request)
    run = folder.read_run()
    if run is None:
        raise UserError(f"run {folder.name} is not finished in {store.root}: it cannot be graded")
    source = StoredRun(folder, run).source
    record, snapshots = grade_submission(store, run, source, request.edition, request.leaderboard)
    if folder.read_run() != run:
        raise UserError(f"run {folder.name} was replaced while it was graded; run the same command again")
    folder.write_snapshots(snapshots)
    folder.write_grade(record)
    score, medal = score_and_medal(record.to_row())
    shown = f"score {score}, {medal if medal != '-' else 'no medal'}" if record.outcome == "valid" else ""
    progress.report(request.name, "graded", ". ".join(filter(None, (shown, record.message))))
    return record


def grade_submission(
    store: Store, run: RunRecord, source: str, edition: Edition, leaderboard: Leaderboard = STORED
) -> tuple[GradeRecord, list[SnapshotRecord]]:
    """Grade the submission of `run`, whose files are below the URL `source`, and its snapshots.

    A run with feedback is graded by the private part of the test set; see `tasks.wiring.final_choice`.

    The key in the record is that of this grading: see `grade_key`. Raises `UserError` if the leaderboard to grade with
    was not fetched, and as `dataset_for`.
    """
    competition = registry.get(run.competition_id)
    thresholds = chosen_thresholds(store, competition.facts, leaderboard)
    dataset = dataset_for(store, run, edition)
    key = grade_key(run.key, dataset, thresholds, has_feedback=run.feedback is not None)
    with (
        local_copy(store, dataset, "private", local_cache()) as prepared,
        tempfile.TemporaryDirectory(prefix="mlebench-grade-") as folder,
        process_graders().grader(competition, prepared, edition, dataset.key or "", thresholds) as grader,
    ):
        more: dict[str, Any] = {}
        if run.feedback is None:
            submission = Path(folder) / SUBMISSION
            if run.submission_exists:
                store.top.fs.get_file(store.top.path(store.relative(f"{source}/{SUBMISSION}")), str(submission))
            result = grader.grade(submission, f"{source}/{SUBMISSION}")
            snapshots = _grade_snapshots(store, run, source, edition, grader.grade_all)
        elif run.feedback_id is None:  # whatever divides the rows, it would be what the agent wrote
            reason = "the record of the run has feedback, but no feedback_id"
            result = grade_of(
                competition.id, thresholds, outcome="failed", score=None, message=reason, detail=None, shown_path=source
            )
            snapshots = []
        else:
            part = PrivatePart(grader, run.feedback, run.feedback_id)
            final, files = grade_final_choice(store, run, source, edition, part)
            result = final.grade
            more |= {"public_score": final.public_score, "score_with_public_rows": final.score_with_public_rows}
            snapshots = _grade_snapshots(store, run, source, edition, part.grade_all) + files
            snapshots.sort(key=lambda each: each.at_seconds)
    # A run that its machine lost is no failure of the agent.
    outcome = "failed" if run.status == "lost" else result.outcome
    message = run.message or "the agent left no submission" if result.outcome == "missing" else result.message
    graded = GradedSubmission(
        report=result.report,
        outcome=outcome,
        message=message,
        run_group=run.run_group,
        run_id=run.run_id,
        seed=run.seed,
        agent=run.agent,
        edition=edition,
        complexity=competition.facts.complexity,
        category=competition.facts.category,
        dense_reward=None
        if outcome == "failed"
        else dense_reward(result.report.score, thresholds, competition.facts.leaderboard.percentiles),
    )
    more |= {"snapshots_hash": snapshots_hash(snapshots)} if snapshots else {}
    record = GradeRecord(
        **graded.to_row(),
        detail=result.detail,
        key=key,
        dataset_key=dataset.key,
        edition_version=VERSIONS[edition],
        **more,
    )
    return sign_record(record, get_settings().ledger_key.get_secret_value()), snapshots


def _grade_snapshots(
    store: Store,
    run: RunRecord,
    source: str,
    edition: Edition,
    grade_all: Callable[[Iterable[tuple[Path, str]]], Iterator[Grade]],
) -> list[SnapshotRecord]:
    """Grade the snapshots of the submission, in the order of time."""
    folder = RunFolder.at(store, source)
    files = folder.snapshot_files() if folder else []
    records = []
    with tempfile.TemporaryDirectory(prefix="mlebench-grade-") as scratch:
        copies = [Path(scratch) / f"{number}.csv" for number in range(len(files))]

        def fetched() -> Iterator[tuple[Path, str]]:
            """Fetch one while another one is graded."""
            for copy, (_, url) in zip(copies, files, strict=True):
                store.top.fs.get_file(store.top.path(store.relative(url)), str(copy))
                yield copy, url

        for copy, (seconds, _), grade in zip(copies, files, grade_all(fetched()), strict=True):
            copy.unlink()
            grades = {n: getattr(grade.report, n) for n in SnapshotRecord.model_fields if hasattr(grade.report, n)}
            grades |= {"edition": edition, "outcome": grade.outcome}
            records.append(SnapshotRecord(**grades | run.who, at_seconds=seconds))
    return records
