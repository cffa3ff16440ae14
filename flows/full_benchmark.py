"""The full benchmark: prepare, then evaluate. Also a command: `python -m flows.full_benchmark --help`."""

from __future__ import annotations

import sys

# `python -m` must answer --help at once: the flow below costs a second of imports.
if __name__ == "__main__":
    from flows.cli import main

    sys.exit(main(["run", *sys.argv[1:]]))

from contextlib import AbstractContextManager

from prefect import flow, runtime
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from flows.credentials import require_agent_credentials
from flows.evaluate import add_all, evaluate, finish_runs
from flows.fleet.cancellation import cancellable, confirm
from flows.fleet.pool import PoolAttempts
from flows.fleet.queues import Priority
from flows.fleet.returning import give_back
from flows.prepare import prepare, prepare_each
from flows.preparing import Preparing
from flows.watching.event_log import logging_events
from flows.watching.naming import request_name
from flows.watching.outcome import Outcome, PartlyFailed, require_finished, show_outcomes
from tasks.wiring.attempts import note_plan
from tasks.wiring.cancelling import RunSelection, forget_cancelling
from tasks.wiring.context import RunContext
from tasks.wiring.job import HandedOver
from tasks.wiring.prefect_server import wait_for_server
from tasks.wiring.requests import RunRequest


@flow(name="full-benchmark", flow_run_name=request_name, on_cancellation=[confirm])
def full_benchmark(
    competition_ids: list[str],
    request: RunRequest,
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
    pool: str | None = None,
    priority: Priority = "normal",
) -> list[Outcome]:
    """Prepare the competitions that are not prepared yet, run the agent on all that are, grade, and report.

    With a work pool, the attempts at a competition begin as soon as it is prepared. On one machine they begin when all
    competitions are prepared, because preparing beside them would take time from agents whose time is limited.

    Raises `PartlyFailed` at the end if anything failed or was cancelled; everything else is finished nevertheless.

    Args:
        competition_ids: The competitions.
        request: The agent, the group, and the conditions of its runs.
        raw_dir: Directory of downloaded archives. Default: download from Kaggle.
        keep_raw: Keep the downloaded archives after preparing.
        skip_verification: Do not compare prepared files with the published checksums.
        pool: The work pool whose workers make the attempts. None: this process makes them.
        priority: Of the attempts among those of other groups in the work pool.
    """
    wait_for_server()
    context = RunContext.of(request)
    if pool is None:  # with a pool, its hosts need them
        require_agent_credentials(context, competition_ids)
    forget_cancelling(request)
    note_plan(context.store, request, competition_ids)
    preparing = Preparing(competition_ids, request.store, request.edition, raw_dir, keep_raw, skip_verification)
    try:
        with logging_events():
            outcomes = (
                _one_after_the_other(preparing, request)
                if pool is None
                else _as_prepared(preparing, context, PoolAttempts(pool, context, priority))
            )
    except HandedOver as error:
        if runtime.deployment.id is None:
            raise
        give_back(str(error))
    return require_finished(outcomes)


def _one_after_the_other(preparing: Preparing, request: RunRequest) -> list[Outcome]:
    selection = RunSelection(request.store, request.run_group)
    with _without_heartbeats(), cancellable(selection.cancel):
        try:
            prepared = prepare(**vars(preparing))
        except PartlyFailed as error:
            prepared = error.outcomes
        ready = [outcome.what for outcome in prepared if outcome.usable]
        try:
            runs = evaluate(ready, request) if ready else []
        except PartlyFailed as error:
            runs = error.outcomes
    return [*prepared, *runs]


def _without_heartbeats() -> AbstractContextManager[object]:
    """Flows that are called in the block emit no heartbeats: those of this flow say that the process is alive.

    Prefect waits up to a second for the end of each flow's heartbeats. `flows.diagnosis.zombies` asks for none.
    """
    return temporary_settings(updates={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def _as_prepared(preparing: Preparing, context: RunContext, in_pool: PoolAttempts) -> list[Outcome]:
    failed: dict[str, Outcome] = {}
    with in_pool as attempts:

        def hand_out(outcome: Outcome) -> None:
            if outcome.usable:
                add_all(attempts, context, outcome.what, failed)

        prepared = prepare_each(preparing, hand_out, attempts.poll)
        outcomes = attempts.outcomes() | failed
    show_outcomes("prepared", prepared)
    try:
        runs = finish_runs(context, outcomes) if outcomes else []
    except PartlyFailed as error:
        runs = error.outcomes
    return [*prepared, *runs]
