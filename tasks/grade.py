"""Step 5: a run's submission against the answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from prefect import task
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

from common.progress import tell
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from grading.medals import STORED, Leaderboard
from grading.report import GradedSubmission
from storage.datasets.prepared import committed_key, held_part
from storage.keys import content_key
from storage.runs.paths import RUN
from storage.store import Store
from tasks.agent_run import run_row
from tasks.wiring.figures import chosen_thresholds
from tasks.wiring.graders import process_graders
from tasks.wiring.snapshots import store_snapshots

GRADE = "grade.json"


def grade_key(competition_id: str, run_key: str, edition: Edition, leaderboard: str = STORED) -> str:
    """The content key of a grade: the run, the grader's code, and the leaderboard if it is a fetched one."""
    other = [] if leaderboard == STORED else [leaderboard]
    return content_key(run_key, registry.get(competition_id).fingerprint("grade"), edition, *other)


def finished_grade(store: Store, run_group: str, competition_id: str, seed: int, key: str) -> dict[str, Any] | None:
    """The row of `tables/grades` that is in the store under `key`; None if the run has still to be graded."""
    record: dict[str, Any] | None = store.read_json(store.run(run_group, competition_id, seed) + f"/{GRADE}")
    # A grading that failed is our bug; it is tried again.
    return record if record is not None and record["key"] == key and record["outcome"] != "failed" else None


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
    url = place.run(run_group, competition_id, seed)
    record = grade_run(place, place.read_json(f"{url}/{RUN}") or {}, url, edition, leaderboard)
    if record["detail"]:
        get_run_logger().error("%s", record["detail"])
    place.write_json(f"{url}/{GRADE}", {**record, "key": key})
    tell(run_row(run_group, competition_id, seed), "graded", record["message"] or f"score {record['score']}")
    return str(record["outcome"])


def grade_run(
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
        process_graders().grader(competition, prepared, edition, version, thresholds) as grader,
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


def prepared_key_of(store: Store, edition: Edition, competition_id: str) -> str:
    """The key of the dataset in the store; empty if it is not prepared (the run will then say so)."""
    return committed_key(store, edition, competition_id) or ""
