"""Step 5: a run's submission against the answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.logging import get_run_logger

from common import progress
from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from grading.medals import STORED, Leaderboard
from grading.report import GradedSubmission
from grading.workers.shared import shared_grader
from storage.datasets.prepared import committed_key, held_part
from storage.keys import content_key
from storage.runs.paths import RUN
from storage.store import Store
from tasks.wiring.caching import while_stored
from tasks.wiring.requests import Attempt, GradeRequest, run_name
from tasks.wiring.snapshots import store_snapshots
from tasks.wiring.thresholds import chosen_thresholds

GRADE = "grade.json"


def grade_request(attempt: Attempt) -> GradeRequest:
    """The grading of an attempt with the stored leaderboard, in the edition of its request."""
    request = attempt.request
    return GradeRequest(
        store=request.store,
        run_group=request.run_group,
        competition_id=attempt.competition_id,
        seed=attempt.seed,
        edition=request.edition,
        key=grade_key(attempt.competition_id, attempt.key, request.edition),
    )


def grade_requests(store: Store, run_group: str, leaderboard: Leaderboard) -> Iterator[GradeRequest | Ungradable]:
    """The grading of each finished run of a group, in the edition that the run was made for."""
    for url in store.glob(f"runs/{run_group}/*/*/{RUN}"):
        run = store.read_json(url) or {}
        name, seed, edition = run["competition_id"], run["seed"], run["edition"]
        try:
            board = chosen_thresholds(store, registry.get(name).facts, leaderboard).leaderboard
        except UserError as error:
            yield Ungradable(run_name(name, seed), str(error))
            continue
        yield GradeRequest(
            store=store.root,
            run_group=run_group,
            competition_id=name,
            seed=seed,
            edition=edition,
            key=grade_key(name, run["key"], edition, board),
            leaderboard=leaderboard,
        )


@dataclass(frozen=True)
class Ungradable:
    """A run that cannot be graded, and why."""

    name: str
    reason: str


def grade_key(competition_id: str, run_key: str, edition: Edition, leaderboard: str = STORED) -> str:
    """The content key of a grade: the run, the grader's code, and the leaderboard if it is a fetched one."""
    other = [] if leaderboard == STORED else [leaderboard]
    return content_key(run_key, registry.get(competition_id).fingerprint("grade"), edition, *other)


def finished_grade(request: GradeRequest) -> dict[str, Any] | None:
    """The record of a grading that was done already, under the same key; None if the run has still to be graded."""
    store = Store(request.store)
    url = store.run(request.run_group, request.competition_id, request.seed)
    record: dict[str, Any] | None = store.read_json(f"{url}/{GRADE}")
    # A grading that failed is our bug, so it is tried again.
    return record if record is not None and record["key"] == request.key and record["outcome"] != "failed" else None


def _stored_key(request: GradeRequest) -> str | None:
    return request.key if finished_grade(request) else None


@task(
    name="grade",
    task_run_name="grade {request.competition_id} seed {request.seed}",
    persist_result=True,
    cache_key_fn=while_stored(_stored_key),
)
def grade(request: GradeRequest) -> str:
    """Grade a run; see `grade_run`. Logs what a grader's own failure was."""
    record = grade_run(request)
    if record["detail"]:
        get_run_logger().error("%s", record["detail"])
    return str(record["outcome"])


def grade_run(request: GradeRequest) -> dict[str, Any]:
    """Grade the submission that a run left, and write the grade record beside the run's; returns the record."""
    place = Store(request.store)
    url = place.run(request.run_group, request.competition_id, request.seed)
    run = place.read_json(f"{url}/{RUN}") or {}
    record = {**grade_submission(place, run, url, request.edition, request.leaderboard), "key": request.key}
    place.write_json(f"{url}/{GRADE}", record)
    progress.report(request.name, "graded", record["message"] or f"score {record['score']}")
    return record


def grade_submission(
    place: Store, run: dict[str, Any], url: str, edition: Edition, leaderboard: Leaderboard = STORED
) -> dict[str, Any]:
    """Grade the submission below `url` that the recorded `run` left: a row of `tables/grades`, and `detail`.

    Raises `UserError` if the competition is not prepared, or no leaderboard was fetched that is to be graded with.
    """
    competition = registry.get(run["competition_id"])
    thresholds = chosen_thresholds(place, competition.facts, leaderboard)
    version = committed_key(place, edition, competition.id) or ""
    with (
        held_part(place, competition.id, edition, "private", get_settings().scratch) as prepared,
        tempfile.TemporaryDirectory(prefix="mlebench-grade-") as folder,
        shared_grader(competition, prepared, edition, version, thresholds) as grader,
    ):
        submission = Path(folder) / "submission.csv"
        if run["submission_exists"]:
            place.top.fs.get_file(place.top.path(place.relative(f"{url}/submission.csv")), str(submission))
        result = grader.grade(submission, f"{url}/submission.csv")
        store_snapshots(place, run, url, grader)
    message = run["message"] or "the agent left no submission" if result.outcome == "missing" else result.message
    graded = GradedSubmission(
        report=result.report,
        outcome=result.outcome,
        message=message,
        run_group=run["run_group"],
        run_id=run["run_id"],
        seed=run["seed"],
        agent=run["agent"],
        edition=edition,
        complexity=competition.facts.complexity,
        category=competition.facts.category,
    )
    return {**graded.to_row(), "detail": result.detail}
