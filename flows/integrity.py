"""Integrity checks of the evaluate flow. Their findings are written to tables and shown in the report."""

from __future__ import annotations

from typing import Any

from prefect import Task, flow

from common import progress
from common.settings import get_settings
from flows.watching.outcome import Outcome, outcome_of
from tasks.integrity import familiarity, plagiarism, violations
from tasks.wiring.process import apply_settings


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
