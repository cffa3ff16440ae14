"""Step 3: compare the prepared files with the checksums of the published benchmark."""

from __future__ import annotations

import contextlib

from common import progress
from competitions import registry
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.datasets.verify import check_dataset
from storage.lease import download_lease, lease, prepare_lease
from storage.sources import BUNDLED
from storage.sources.acquire import discard_archive
from storage.sources.archive_references import referencing_editions
from tasks.wiring.context import open_store


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


def keeps_archive(competition_id: str) -> bool:
    """Whether the archive is kept after preparing without being asked to; bundled ones are made again in seconds."""
    return not registry.in_catalog(competition_id) and registry.get(competition_id).facts.source != BUNDLED


def discard_unused(competition_id: str, store_url: str) -> None:
    """Remove the archive, unless another process uses it or will use it; that process will remove it.

    The archive of a competition outside the catalog is kept, because its prepare.py is still being worked on: what was
    made by other code is then prepared anew by itself.
    """
    store, name = open_store(store_url), competition_id
    if keeps_archive(name):
        return
    with contextlib.ExitStack() as leases:
        for lease_name in (download_lease(name), *(prepare_lease(Dataset(edition, name)) for edition in EDITIONS)):
            if leases.enter_context(lease(store, lease_name, wait=False)) is None:
                return
        if not referencing_editions(store, name):
            discard_archive(store, name)
