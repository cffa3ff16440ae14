"""Step 1: download a competition's archive into the store.

A transfer from Kaggle that makes no progress is given up after some minutes (`storage.sources.kaggle.retry`), and
resumed by the retries of the task, like everything else that fails for a transient cause.
"""

from __future__ import annotations

from common import progress
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from competitions.variant import Variant
from storage.dataset import Dataset
from storage.lease import download_lease, lease
from storage.sources.acquire import acquire
from storage.sources.archive_references import reference_archive
from storage.sources.availability import stating_availability
from tasks.wiring.context import data_for, download_source, open_store
from tasks.wiring.host import slot


def download_archive(
    competition_id: str,
    store_url: str,
    raw_dir: str | None = None,
    verify: bool = True,
    edition: Edition = "v1",
    renew: bool = False,
) -> str:
    """Fetch the archive if the store has no complete one; returns its hash.

    Waits if another process is downloading the archive. That process may even have prepared the dataset and removed
    the archive by then. With `renew`, the archive of a dataset that other code made is fetched too.
    """
    store = open_store(store_url)

    def waiting(reason: str) -> None:
        progress.report(competition_id, "waiting", reason)

    competition = registry.get(competition_id)
    with (
        stating_availability(competition),
        slot("downloads", get_settings().downloads),
        lease(store, download_lease(competition_id), on_wait=waiting),
    ):
        source = download_source(competition_id, raw_dir)
        if isinstance(competition, Variant):
            progress.report(competition_id, "split", f"from {competition.parent.id}")
        else:
            progress.report(competition_id, "download", source.name)
        dataset = Dataset(edition, competition_id)
        data = data_for(store, dataset, raw_dir, renew=renew)
        if data.state in ("prepared", "made"):
            return data.download
        record = acquire(
            store,
            competition,
            source,
            verify=verify,
            renew=renew,
            on_progress=lambda step: progress.report(competition_id, "download", step),
            patience=get_settings().patience,
        )
        reference_archive(store, dataset)
    return record["hash"]
