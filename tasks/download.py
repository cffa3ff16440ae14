"""Step 1: the competition's archive in the store."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.tasks import exponential_backoff

from competitions import registry
from storage.acquire import acquire
from storage.sources import source_for
from storage.store import Store
from tasks.policy import can_pass
from tasks.progress import tell
from tasks.slots import slot


@task(
    name="download",
    task_run_name="download {competition_id}",
    retries=4,
    retry_delay_seconds=exponential_backoff(backoff_factor=4),
    retry_jitter_factor=0.5,
    retry_condition_fn=can_pass,
)
def download(competition_id: str, store: str, raw_dir: str | None = None, verify: bool = True) -> str:
    """Fetch the archive if the store has no complete one; returns its hash."""
    with slot("downloads"):
        competition = registry.get(competition_id)
        source = source_for(competition, Path(raw_dir) if raw_dir else None)
        tell(competition_id, "download", source.name)
        record = acquire(
            Store(store),
            competition,
            source,
            verify=verify,
            on_progress=lambda step: tell(competition_id, "download", step),
        )
    return record["hash"]
