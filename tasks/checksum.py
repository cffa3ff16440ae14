"""Step 3: compare the prepared files with the checksums of the published benchmark."""

from __future__ import annotations

import contextlib
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from common.progress import tell
from competitions import registry
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.datasets.prepared import check, is_verified
from storage.lease import lease, prepare_lease
from storage.sources.acquire import discard_archive
from storage.store import Store
from tasks.wiring.stores import open_store


def _cache_key(_context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    dataset = Dataset(parameters["edition"], parameters["competition_id"], parameters["key"])
    return f"checksum-{dataset.key}" if is_verified(open_store(parameters["store"]), dataset) else None


@task(name="checksum", task_run_name="checksum {competition_id}", persist_result=True, cache_key_fn=_cache_key)
def checksum(competition_id: str, store: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Compare with the MD5s in competition.yaml; returns the number of files compared.

    Then the raw archive is removed unless `keep_raw`.
    """
    tell(competition_id, "checksum")
    place, dataset = open_store(store), Dataset(edition, competition_id, key)
    compared = check(place, dataset, registry.get(competition_id))
    if not keep_raw:
        _discard_archive(place, dataset)
    return compared


def _discard_archive(store: Store, dataset: Dataset) -> None:
    """Remove the archive, unless another process prepares another edition from it; that process will remove it."""
    with contextlib.ExitStack() as held:
        for other in EDITIONS:
            name = prepare_lease(Dataset(other, dataset.competition_id))
            if other != dataset.edition and held.enter_context(lease(store, name, wait=False)) is None:
                return
        discard_archive(store, dataset.competition_id)
