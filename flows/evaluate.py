"""The evaluate flow: an attempt for each competition and seed, then aggregate."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from prefect import Task, flow, runtime

from common import progress
from common.settings import get_settings
from common.units import counted
from flows.fleet.local import LocalAttempts
from flows.fleet.notifications import GROUP_FINISHED, Message, announce
from flows.grading import finish_group
from flows.watching.naming import request_name
from flows.watching.outcome import Outcome, capture_errors, outcome_of
from storage.runs.folders import finished_folders
from storage.store import Store
from tasks.steps import familiarity, plagiarism, violations
from tasks.wiring.attempts import attempts_of, note_plan
from tasks.wiring.cancelling import forget_cancelling
from tasks.wiring.context import RunContext
from tasks.wiring.prefect_server import wait_for_server
from tasks.wiring.process import apply_settings
from tasks.wiring.requests import Attempt, RunRequest
from tasks.wiring.storing import remove_leftovers


class Attempts(Protocol):
    """Makes attempts: in this process, or in a work pool."""

    def add(self, attempt: Attempt) -> None:
        """Have an attempt made and graded, unless that is done."""


@flow(name="evaluate", flow_run_name=lambda: f"evaluate {request_name()}")
def evaluate(competition_ids: list[str], request: RunRequest) -> list[Outcome]:
    """Run an agent on prepared competitions with several seeds, grade its submissions, and report on the group.

    This process makes the attempts; `full_benchmark` can also have a work pool make them.

    Runs and grades that are already in the store under the same content key are reused. Raises `PartlyFailed` at the
    end if a run could not be made or graded. An agent that crashes or times out is a result, not a failure.

    Args:
        competition_ids: The prepared competitions.
        request: The agent, the group, and the conditions of its runs.
    """
    wait_for_server()
    context = RunContext.of(request)
    remove_leftovers(context.store)
    if runtime.flow_run.parent_flow_run_id is None:
        forget_cancelling(request)
    note_plan(context.store, request, competition_ids)
    failed: dict[str, Outcome] = {}
    with LocalAttempts(context) as attempts:
        for name in competition_ids:
            add_all(attempts, context, name, failed)
        outcomes = attempts.outcomes() | failed
    return finish_runs(context, outcomes)


def add_all(attempts: Attempts, context: RunContext, competition_id: str, failed: dict[str, Outcome]) -> None:
    """Have the attempts at a prepared competition made, one per seed. Errors become outcomes in `failed`."""
    attempts_to_make: list[Attempt] = []
    with capture_errors(competition_id, failed):
        attempts_to_make = attempts_of(context, competition_id)
    for attempt in attempts_to_make:
        with capture_errors(attempt.name, failed):
            attempts.add(attempt)


def finish_runs(context: RunContext, outcomes: dict[str, Outcome]) -> list[Outcome]:
    """Examine the runs if that is asked for, and report on the group. Raises `PartlyFailed` if anything failed."""
    request, store = context.request, context.store
    with capture_errors("integrity", outcomes):
        if request.examine and finished_folders(store, request.run_group):
            outcomes |= {outcome.what: outcome for outcome in integrity(request.run_group, store.root)}
    try:
        return finish_group(store, request.run_group, outcomes)
    finally:
        announce(GROUP_FINISHED, f"mlebench.group.{request.run_group}", _finished(store, request, outcomes))


def _finished(store: Store, request: RunRequest, outcomes: dict[str, Outcome]) -> Message:
    """The notification of a finished group."""
    ends = Counter(outcome.result for outcome in outcomes.values())
    report = store.url("reports", request.run_group, "report.html")
    cancelled = f", {ends['cancelled']} cancelled" if ends["cancelled"] else ""
    counts = f"{counted(len(outcomes), 'run')}, {ends['failed']} failed{cancelled}"
    return Message(f"Run group {request.run_group} has finished: {counts}", f"Agent {request.agent}. Report:", report)


@flow(name="integrity", flow_run_name="integrity of {run_group}")
def integrity(run_group: str, store: str) -> list[Outcome]:
    """Examine the runs of a group for plagiarism and broken rules; measure a model's familiarity if one is configured.

    A check that fails does not stop the others.
    """
    apply_settings()
    stages: dict[Task[..., Any], str] = {plagiarism: "to look at", violations: "to look at"}
    if get_settings().familiarity_model:
        stages[familiarity] = "competitions measured"
    futures = {stage: stage.submit(run_group, store) for stage in stages}
    outcomes = []
    for stage, future in futures.items():
        outcome = outcome_of(f"{stage.name} {run_group}", [future])
        if outcome.result == "done":
            outcome = Outcome(outcome.what, "done", f"{future.state.result()} {stages[stage]}")
        progress.report(outcome.what, outcome.result, outcome.message)
        outcomes.append(outcome)
    return outcomes
