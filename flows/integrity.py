"""The integrity stages of the evaluate flow: what is found becomes tables, and with them sections of the report."""

from __future__ import annotations

from prefect import flow

from flows.outcome import Outcome, outcome_of
from tasks.plagiarism import plagiarism
from tasks.progress import tell
from tasks.violations import violations


@flow(name="integrity", flow_run_name="integrity of {run_group}")
def integrity(run_group: str, store: str) -> list[Outcome]:
    """Look for plagiarism and broken rules in a group's runs. A stage that fails does not stop the other."""
    futures = {f"{each.name} {run_group}": each.submit(run_group, store) for each in (plagiarism, violations)}
    outcomes = []
    for what, future in futures.items():
        outcome = outcome_of(what, [future])
        if outcome.result == "done":
            outcome = Outcome(what, "done", f"{future.state.result()} to look at")
        tell(what, outcome.result, outcome.message)
        outcomes.append(outcome)
    return outcomes
