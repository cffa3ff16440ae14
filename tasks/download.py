"""Step 1: the competition's archive in the store.

The retries here are for the store. The Kaggle source has its own, see `storage.sources.kaggle.retry`; what that gives
up on is not tried again.
"""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.tasks import exponential_backoff

from common import progress
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from storage.datasets.prepared import is_prepared
from storage.lease import lease
from storage.sources import source_for
from storage.sources.acquire import acquire, recorded
from storage.store import Store
from tasks.wiring.retries import can_pass
from tasks.wiring.slots import slot


@task(
    name="download",
    task_run_name="download {competition_id}",
    retries=4,
    retry_delay_seconds=exponential_backoff(backoff_factor=4),
    retry_jitter_factor=0.5,
    retry_condition_fn=can_pass,
)
def download(
    competition_id: str, store: str, raw_dir: str | None = None, verify: bool = True, edition: Edition = "v1"
) -> str:
    """Fetch the archive of a competition; see `download_archive`."""
    return download_archive(competition_id, store, raw_dir, verify, edition)


def download_archive(
    competition_id: str, store: str, raw_dir: str | None = None, verify: bool = True, edition: Edition = "v1"
) -> str:
    """Fetch the archive if the store has no complete one; returns its hash.

    Another process that does so already is waited for; it may also have prepared the dataset and removed the archive.
    """
    place = Store(store)

    def waiting(reason: str) -> None:
        progress.report(competition_id, "waiting", reason)

    with slot("downloads", get_settings().downloads), lease(place, f"download/{competition_id}", on_wait=waiting):
        competition = registry.get(competition_id)
        source = source_for(competition, Path(raw_dir) if raw_dir else None)
        progress.report(competition_id, "download", source.name)
        known = recorded(place, competition, source)
        if known is not None and is_prepared(place, competition_id, edition, raw_dir, verified=False):
            return known["hash"]
        record = acquire(
            place,
            competition,
            source,
            verify=verify,
            on_progress=lambda step: progress.report(competition_id, "download", step),
        )
    return record["hash"]
