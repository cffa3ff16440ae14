"""The prepare flow: download -> split -> checksum for each competition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from prefect import allow_failure, flow
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger

from common import progress
from common.causes import retrying
from common.settings import get_settings
from competitions import registry
from competitions.editions import Choice, chosen
from flows.preparing import Outlook, Preparing, parent_of
from flows.watching.naming import parameters, selection_name
from flows.watching.outcome import Outcome, capture_errors, finish, outcome_of
from storage.datasets.prepared import left_out_of
from storage.sources.availability import stating_availability
from storage.store import opening_seconds
from tasks.steps import checksum, discard, download, split
from tasks.wiring.context import open_store
from tasks.wiring.dask_workers import Workers
from tasks.wiring.prefect_server import wait_for_server


def _name() -> str:
    given = parameters()
    return f"prepare {selection_name(given['competition_ids'])} {given['edition']}"


@flow(name="prepare", flow_run_name=_name)
def prepare(
    competition_ids: list[str],
    store: str,
    edition: Choice = "v1",
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
    renew: bool = False,
) -> list[Outcome]:
    """Prepare competitions. Already prepared ones are skipped before any task is submitted.

    With `renew`, datasets made by other code are downloaded again, and kept if the current code makes the same files.
    Raises `PartlyFailed` at the end if some failed; the others are prepared nevertheless.
    """
    wait_for_server()
    outcomes = prepare_each(Preparing(competition_ids, store, edition, raw_dir, keep_raw, skip_verification, renew))
    return finish("prepared", outcomes)


def prepare_each(
    what: Preparing,
    on_end: Callable[[Outcome], None] = lambda _: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Prepare competitions in the flow that calls this; returns their outcomes in the order of the ids.

    Args:
        what: The competitions.
        on_end: Called with each outcome as soon as it is known, while others are being prepared.
        meanwhile: Called every second or so while this waits.
    """
    store, settings = open_store(what.store), get_settings()
    with progress.waits("prepare") as waiting:
        store.require_usable(seconds=settings.patience, on_wait=waiting)
    outcomes: dict[str, Outcome] = {}

    def end(outcome: Outcome) -> None:
        if outcome.usable:
            left_out = left_out_of(store, outcome.what, chosen(what.edition))
            outcome = replace(outcome, message="; ".join(filter(None, (outcome.message, left_out))))
        outcomes[outcome.what] = outcome
        progress.report(outcome.what, outcome.result, outcome.message)
        on_end(outcome)

    outlook = Outlook.of(store, what)
    outlook.require_some(what.raw_dir, of_all=True)
    todo = []
    for name, state in outlook.states.items():
        failed: dict[str, Outcome] = {}
        with capture_errors(name, failed), stating_availability(registry.get(name)):
            if isinstance(state, Exception):
                raise state
            if name in outlook.refused:
                raise outlook.refused[name]
        if failed:
            end(failed[name])
        elif state == "prepared":
            end(Outcome(name, "reused", "prepared already"))
        else:
            progress.report(name, "queued")
            todo.append(name)
    if todo:
        with Workers(get_run_logger().info) as workers:
            if settings.dask_address or settings.dask_dashboard:  # the user's, and to be seen
                with progress.waits("prepare") as waiting:
                    retrying(workers.start, seconds=opening_seconds(), on_wait=waiting)
            ended: SimpleQueue[str] = SimpleQueue()
            chains: dict[str, list[PrefectFuture[Any]]] = {}
            for name in sorted(todo, key=parent_of):  # variants after the competitions that they are made of
                chains[name] = _submit(name, what, store.root, workers, chains.get(parent_of(name), []))
            for name, chain in chains.items():
                # The last task run of a chain also ends if an earlier one fails.
                chain[-1].add_done_callback(partial(_note, ended, name))
            while len(outcomes) < len(what.competition_ids):
                with contextlib.suppress(Empty):
                    name = ended.get(timeout=1.0)
                    end(outcome_of(name, chains[name]))
                meanwhile()
    return [outcomes[name] for name in what.competition_ids]


def _note(ended: SimpleQueue[str], name: str, _future: PrefectFuture[Any]) -> None:
    ended.put(name)


def _submit(
    name: str, preparing: Preparing, store: str, workers: Workers, after: list[PrefectFuture[Any]]
) -> list[PrefectFuture[Any]]:
    """Submit the task runs that prepare a competition; each waits for the one before.

    The first one waits for the end of those in `after`. If they failed, it says itself what is missing.

    All editions ask for the archive before the first is prepared, so it is fetched once, and removed by the last.
    """
    chain: list[PrefectFuture[Any]] = []
    ended: list[Any] = [allow_failure(future) for future in after[-1:]]
    editions, verify = chosen(preparing.edition), not preparing.skip_verification
    for edition in editions:
        chain.append(
            download.submit(
                name,
                store,
                preparing.raw_dir,
                verify,
                edition,
                preparing.renew,
                return_state=False,
                wait_for=chain[-1:] or ended,
            )
        )
    archives = dict(zip(editions, chain, strict=True))
    for edition in editions:
        previous = chain[-1:]
        key = split.submit(name, store, edition, workers, archives[edition], return_state=False, wait_for=previous)
        chain.append(key)
        if verify:
            chain.append(checksum.submit(name, store, edition, key, preparing.keep_raw, return_state=False))
        elif not preparing.keep_raw:
            chain.append(discard.submit(name, store, return_state=False, wait_for=[key]))
    return chain
