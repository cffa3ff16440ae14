"""The adopt flow: take over what the published benchmark has prepared."""

from __future__ import annotations

from prefect import flow

from common import progress
from competitions.editions import Edition
from flows.watching.naming import parameters, selection_name
from flows.watching.outcome import Outcome, capture_errors, finish, outcome_of
from storage.dataset import Dataset
from tasks import steps
from tasks.wiring.context import already_prepared, open_store
from tasks.wiring.prefect_server import wait_for_server

_EDITION: Edition = "v1"


def _name() -> str:
    return f"adopt {selection_name(parameters()['competition_ids'])}"


@flow(name="adopt", flow_run_name=_name)
def adopt(
    competition_ids: list[str], store: str, directory: str, link: bool = True, compare: bool = True
) -> list[Outcome]:
    """Adopt the prepared data of competitions, one after another: a single one keeps the disks busy.

    Already prepared ones are skipped. Raises `PartlyFailed` at the end if some failed; the others are adopted
    nevertheless.
    """
    wait_for_server()
    opened = open_store(store)
    outcomes: dict[str, Outcome] = {}
    for name in competition_ids:
        with capture_errors(name, outcomes):
            if already_prepared(opened, Dataset(_EDITION, name), None, verified=compare):
                outcomes[name] = Outcome(name, "reused", "prepared already")
            else:
                future = steps.adopt.submit(name, opened.root, directory, link, compare)
                ended = outcome_of(name, [future])
                outcomes[name] = Outcome(name, "done", future.result()) if ended.result == "done" else ended
        progress.report(name, outcomes[name].result, outcomes[name].message)
    return finish("adopted", [outcomes[name] for name in competition_ids])
