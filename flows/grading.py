"""Grading the runs of a group in a flow, and how a flow of a run group ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefect.futures import PrefectFuture

from common import progress
from flows.watching.artifacts import show_group
from flows.watching.outcome import Outcome, cause, finish, outcome_of
from storage.store import Store
from tasks.steps import aggregate, grade
from tasks.wiring.grades import Ungradable, finished_grade
from tasks.wiring.requests import GradeRequest

Work = Outcome | Sequence[PrefectFuture[Any]]
"""The outcome of a run, or the task runs whose end decides it."""


def submit_grade(store: Store, request: GradeRequest | Ungradable, after: Sequence[PrefectFuture[Any]] = ()) -> Work:
    """Submit the grading of a run, which waits for the task runs in `after`, unless the run is already graded."""
    if isinstance(request, Ungradable):
        return Outcome(request.name, "failed", request.reason)
    if not after and finished_grade(store, request) is not None:
        progress.report(request.name, "reused", "already graded")
        return Outcome(request.name, "reused", "already graded")
    return [*after, grade.submit(request, wait_for=after, return_state=False)]


def outcomes_of(work: Mapping[str, Work]) -> dict[str, Outcome]:
    """Wait for all the work; returns its outcomes."""
    outcomes = {}
    for name, part in work.items():
        outcome = part if isinstance(part, Outcome) else _outcome(name, part)
        outcomes[name] = outcome
        if outcome.result in ("failed", "cancelled"):  # other outcomes are reported as soon as they are known
            progress.report(name, outcome.result, outcome.message)
    return outcomes


def _outcome(name: str, futures: Sequence[PrefectFuture[Any]]) -> Outcome:
    outcome = outcome_of(name, futures)
    if outcome.result == "done" and futures[-1].state.result() == "failed":
        return Outcome(name, "failed", "grading failed because of a bug; see the task run's log")
    return outcome


def finish_group(store: Store, run_group: str, outcomes: Mapping[str, Outcome]) -> list[Outcome]:
    """Write tables and reports of a group and show them in the Prefect UI. Raises `PartlyFailed` if anything failed."""
    outcomes_with_report = dict(outcomes)
    state = aggregate(run_group, store.root, return_state=True)
    if state.is_completed():
        show_group(store, run_group, state.result())
    else:  # the outcomes of the runs are worth more than their report
        outcomes_with_report["tables and report"] = Outcome(f"tables and report of {run_group}", "failed", cause(state))
    return finish("runs", [outcomes_with_report[name] for name in sorted(outcomes_with_report)])
