"""Step 3: compare the prepared files with the checksums of the published benchmark."""

from __future__ import annotations

import contextlib

from prefect import task

from common import progress
from competitions import registry
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.datasets.prepared import check_dataset, is_verified
from storage.lease import lease, prepare_lease
from storage.sources.acquire import discard_archive
from storage.store import Store
from tasks.wiring.caching import while_stored
from tasks.wiring.retries import retried
from tasks.wiring.stores import open_store


def _stored_key(competition_id: str, store: str, edition: Edition, key: str, **_: bool) -> str | None:
    return key if is_verified(open_store(store), Dataset(edition, competition_id, key)) else None


@task(
    name="checksum",
    task_run_name="checksum {competition_id}",
    persist_result=True,
    cache_key_fn=while_stored(_stored_key),
    **retried(),
)
def checksum(competition_id: str, store: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Verify a prepared dataset; see `verify_checksums`."""
    return verify_checksums(competition_id, store, edition, key, keep_raw)


def verify_checksums(competition_id: str, store: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Compare prepared files with the MD5s in competition.yaml; returns how many were compared.

    Removes the downloaded archive afterwards, unless `keep_raw`.
    """
    progress.report(competition_id, "checksum")
    place, dataset = open_store(store), Dataset(edition, competition_id, key)
    compared = check_dataset(place, dataset, registry.get(competition_id))
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
