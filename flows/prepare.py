"""The prepare flow: download -> split -> checksum for each competition."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger

from common import progress
from common.causes import patiently
from common.settings import get_settings
from competitions.editions import Edition
from flows.watching.naming import parameters, selection_name
from flows.watching.outcome import Outcome, contained, finish, outcome_of
from storage.dataset import Dataset
from storage.datasets.cluster import cluster
from storage.store import OPENING_SECONDS
from tasks.checksum import checksum
from tasks.download import download
from tasks.split import split
from tasks.wiring.process import apply_settings
from tasks.wiring.server import outlast_server
from tasks.wiring.stores import already_prepared, open_store


def _name() -> str:
    given = parameters()
    return f"prepare {selection_name(given['competition_ids'])} {given['edition']}"


@flow(name="prepare", flow_run_name=_name)
def prepare(
    competition_ids: list[str],
    store: str,
    edition: Edition = "v1",
    raw_dir: str | None = None,
    keep_raw: bool = False,
    skip_verification: bool = False,
    renew: bool = False,
) -> list[Outcome]:
    """Prepare competitions. Already prepared ones are skipped before any task is submitted.

    With `renew`, datasets made by other code are downloaded again, and kept if the current code makes the same files.
    Raises `PartlyFailed` at the end if some failed; the others are prepared nevertheless.
    """
    outlast_server()
    place, settings = open_store(store), get_settings()

    def waiting(text: str) -> None:
        progress.report("prepare", "waiting", text)

    place.require_usable(settings.patience, on_wait=waiting)
    outcomes: dict[str, Outcome] = {}
    for name in competition_ids:
        with contained(name, outcomes):
            if already_prepared(place, Dataset(edition, name), raw_dir, verified=not skip_verification, renew=renew):
                outcomes[name] = Outcome(name, "reused", "prepared already")
                progress.report(name, "reused", "prepared already")
            else:
                progress.report(name, "queued")
    todo = [name for name in competition_ids if name not in outcomes]
    if todo:
        log = get_run_logger()
        opened = partial(
            cluster,
            settings.dask_address,
            settings.dask_workers,
            apply_settings,
            settings.dask_dashboard,
            lambda link: log.info("Dask dashboard: %s", link),
        )
        with contextlib.ExitStack() as stack:
            address = patiently(lambda: stack.enter_context(opened()), seconds=OPENING_SECONDS, on_wait=waiting)
            chains: dict[str, list[PrefectFuture[Any]]] = {}
            for name in todo:
                archive = download.submit(name, place.root, raw_dir, not skip_verification, edition, renew)
                key = split.submit(name, place.root, edition, address, archive, return_state=False)
                chains[name] = [archive, key]
                if not skip_verification:
                    chains[name].append(checksum.submit(name, place.root, edition, key, keep_raw, return_state=False))
            for name, chain in chains.items():
                outcomes[name] = outcome_of(name, chain)
                progress.report(name, outcomes[name].result, outcomes[name].message)
    return finish("prepared", [outcomes[name] for name in competition_ids])
