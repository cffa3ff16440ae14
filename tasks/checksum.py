"""Step 3: compare the prepared files with the checksums of the published benchmark."""

from __future__ import annotations

import contextlib

from prefect import task

from common import progress
from competitions import registry
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.datasets.verify import check_dataset, is_verified
from storage.lease import download_lease, lease, prepare_lease
from storage.sources.acquire import discard_archive
from storage.sources.archive_references import referencing_editions
from tasks.wiring.context import open_store
from tasks.wiring.prefect_tasks import retry_options, while_stored


def _stored_key(competition_id: str, store_url: str, edition: Edition, key: str, **_: bool) -> str | None:
    store = open_store(store_url)  # this comes first, because it applies the settings, which name further competitions
    return key if is_verified(store, Dataset(edition, competition_id, key), registry.get(competition_id)) else None


@task(
    name="checksum",
    task_run_name="checksum {competition_id}",
    persist_result=True,
    cache_key_fn=while_stored(_stored_key),
    **retry_options(),
)
def checksum(competition_id: str, store_url: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Verify a prepared dataset; see `verify_checksums`."""
    return verify_checksums(competition_id, store_url, edition, key, keep_raw)


def verify_checksums(competition_id: str, store_url: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Compare prepared files with the MD5s in competition.yaml; returns how many were compared.

    Removes the downloaded archive afterwards, unless `keep_raw`.
    """
    progress.report(competition_id, "checksum")
    store, dataset = open_store(store_url), Dataset(edition, competition_id, key)
    compared = check_dataset(store, dataset, registry.get(competition_id))
    if not keep_raw:
        discard_unused(competition_id, store_url)
    return compared


def discard_unused(competition_id: str, store_url: str) -> None:
    """Remove the archive, unless another process uses it or will use it; that process will remove it."""
    store, name = open_store(store_url), competition_id
    with contextlib.ExitStack() as leases:
        for lease_name in (download_lease(name), *(prepare_lease(Dataset(edition, name)) for edition in EDITIONS)):
            if leases.enter_context(lease(store, lease_name, wait=False)) is None:
                return
        if not referencing_editions(store, name):
            discard_archive(store, name)


discard = task(name="discard", task_run_name="discard {competition_id}", **retry_options())(discard_unused)
"""`discard_unused` as a step of the flow, for datasets that are not verified."""
