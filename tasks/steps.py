"""The steps of the pipeline as Prefect tasks. Their plain functions are in other modules, which do not import Prefect.

A flow submits these. Commands call the plain functions, because importing Prefect takes longer than most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from prefect import task
from prefect.logging import get_run_logger

from common import progress
from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from sandbox.agent_registry import load_agent
from storage.dataset import Dataset
from storage.datasets.current import read_current
from storage.datasets.verify import is_verified
from tasks.adopt import adopt_dataset
from tasks.agent_run import run_agent
from tasks.checksum import discard_unused, verify_checksums
from tasks.download import download_archive
from tasks.grading import grade_run
from tasks.plagiarism import find_plagiarism
from tasks.report import aggregate_group
from tasks.split import split_dataset, split_recipe
from tasks.violations import find_violations
from tasks.wiring.artifacts import ProgressBar
from tasks.wiring.attempts import finished_run
from tasks.wiring.context import open_store
from tasks.wiring.dask_workers import Workers
from tasks.wiring.grades import finished_grade
from tasks.wiring.prefect_tasks import retry_options, while_stored
from tasks.wiring.requests import Attempt, GradeRequest

download = task(name="download", task_run_name="download {competition_id}", **retry_options())(download_archive)
"""Step 1: `download_archive`."""


# The keys open the store first, because that applies the settings, which can add competitions.
def _current_key(competition_id: str, store_url: str, edition: Edition, download_hash: str, **_: str) -> str | None:
    store = open_store(store_url)
    current = read_current(store, Dataset(edition, competition_id))
    if current.dataset is None or current.state(split_recipe(competition_id, download_hash, edition)) != "same":
        return None
    return current.dataset.key


@task(
    name="split",
    task_run_name="split {competition_id}",
    persist_result=True,
    cache_key_fn=while_stored(_current_key),
    **retry_options(),
)
def split(competition_id: str, store_url: str, edition: Edition, workers: Workers, download_hash: str) -> str:
    """Step 2: `split_dataset` with a flow's workers, and with its progress in the UI."""
    store = open_store(store_url)
    size = store.size(store.raw(competition_id)) or 0
    executor = workers.executor_for(size, on_wait=partial(progress.report, competition_id, "waiting"))
    bar, tell = ProgressBar(f"prepare {competition_id} {edition}"), get_run_logger().info
    return split_dataset(competition_id, store_url, edition, download_hash, executor, bar.show, tell)


def _verified_key(competition_id: str, store_url: str, edition: Edition, key: str, **_: bool) -> str | None:
    store = open_store(store_url)
    return key if is_verified(store, Dataset(edition, competition_id, key), registry.get(competition_id)) else None


checksum = task(
    name="checksum",
    task_run_name="checksum {competition_id}",
    persist_result=True,
    cache_key_fn=while_stored(_verified_key),
    **retry_options(),
)(verify_checksums)
"""Step 3: `verify_checksums`."""

discard = task(name="discard", task_run_name="discard {competition_id}", **retry_options())(discard_unused)
"""`discard_unused`, for datasets that are not verified."""


def _run_key(attempt: Attempt) -> str | None:
    return attempt.key if finished_run(open_store(attempt.request.store), attempt) else None


def _run_name(parameters: dict[str, Any]) -> str:
    """The name of the task run, with the agent's name even if the agent was given as a folder."""
    attempt: Attempt = parameters["attempt"]
    agent = load_agent(attempt.request.agent, get_settings().agent_dirs).full_name
    return f"run {agent} on {attempt.name}"


agent_run = task(
    name="agent-run",
    task_run_name=_run_name,  # type: ignore[arg-type]  # its protocol asks for more than it uses
    persist_result=True,
    cache_key_fn=while_stored(_run_key),
    **retry_options(),
)(run_agent)
"""Step 4: `run_agent`."""


def _grade_key(request: GradeRequest) -> str | None:
    return request.key if finished_grade(open_store(request.store), request) else None


@task(
    name="grade",
    task_run_name="grade {request.competition_id} seed {request.seed}",
    persist_result=True,
    cache_key_fn=while_stored(_grade_key),
    **retry_options(),
)
def grade(request: GradeRequest) -> str:
    """Step 5: `grade_run`. Logs the details if the grader itself failed."""
    record = grade_run(request)
    if record.detail:
        get_run_logger().error("%s", record.detail)
    return record.outcome


@task(name="aggregate", task_run_name="aggregate {run_group}", **retry_options())
def aggregate(run_group: str, store_url: str) -> str | None:
    """Step 6: `aggregate_group`."""
    return aggregate_group(open_store(store_url), run_group)


adopt = task(name="adopt", task_run_name="adopt {competition_id}", **retry_options())(adopt_dataset)
"""`adopt_dataset`, instead of the first three steps."""


@task(name="violations", task_run_name="violations {run_group}", **retry_options())
def violations(run_group: str, store_url: str) -> int:
    """Write tables/violations of a group; returns the number of runs that a person should look at."""
    return find_violations(open_store(store_url), run_group).flagged


@task(name="plagiarism", task_run_name="plagiarism {run_group}", **retry_options())
def plagiarism(run_group: str, store_url: str, against: Sequence[str] = ()) -> int:
    """Write tables/plagiarism of a group; returns the number of pairs that a person should look at."""
    return sum(row["flagged"] for row in find_plagiarism(open_store(store_url), run_group, against))


@task(name="familiarity", task_run_name="familiarity {run_group}", **retry_options())
def familiarity(run_group: str, store_url: str) -> int:
    """Write the tables of `find_familiarity` for the settings' model; returns the number of competitions measured."""
    # These import pandas, which hosts do not need for attempts.
    from tasks.familiarity import find_familiarity
    from tasks.report import write_tables

    store, model = open_store(store_url), get_settings().familiarity_model
    if model is None:
        raise UserError("no model to measure: set MLEBENCH_FAMILIARITY_MODEL")
    # Familiarity is correlated with the scores of all runs that are graded by now.
    write_tables(store, run_group)
    rows, _ = find_familiarity(store, run_group, model)
    return sum(row["kind"] == "all" for row in rows)
