"""Step 2: split the data anew and write the prepared dataset, on Dask."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext
from prefect.tasks import exponential_backoff

from common.progress import tell
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.cluster import DaskExecutor
from storage.datasets.job import Job
from storage.datasets.materialise import Progress, materialise
from storage.datasets.prepared import committed_key, prepared_key
from storage.lease import lease, prepare_lease
from tasks.wiring.process import apply_settings
from tasks.wiring.retries import can_pass
from tasks.wiring.slots import slot
from tasks.wiring.stores import open_store


def split_key(competition_id: str, download_hash: str, edition: Edition) -> str:
    """The content key of the dataset that `split` makes of a download."""
    params = get_settings().params_of(competition_id)
    return prepared_key(registry.get(competition_id), download_hash, edition, params)


def _cache_key(_context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    """A cached result is valid only while the store has the dataset."""
    competition_id, edition = parameters["competition_id"], parameters["edition"]
    key = split_key(competition_id, parameters["download_hash"], edition)
    committed = committed_key(open_store(parameters["store"]), Dataset(edition, competition_id))
    return f"split-{key}" if committed == key else None


@task(
    name="split",
    task_run_name="split {competition_id}",
    persist_result=True,
    cache_key_fn=_cache_key,
    retries=3,
    retry_delay_seconds=exponential_backoff(backoff_factor=5),
    retry_condition_fn=can_pass,
)
def split(competition_id: str, store: str, edition: Edition, dask_address: str, download_hash: str) -> str:
    """Prepare the dataset of a download unless the store has it; returns its content key."""
    key = split_key(competition_id, download_hash, edition)
    place, dataset = open_store(store), Dataset(edition, competition_id)

    def waiting(reason: str) -> None:
        tell(competition_id, "waiting", reason)

    with slot("preparations"), lease(place, prepare_lease(dataset), on_wait=waiting) as mine:
        assert mine is not None
        if committed_key(place, dataset) == key:
            return key
        artifact = create_progress_artifact(0.0, description=f"prepare {competition_id} {edition}")
        shown = 0.0

        def show(progress: Progress) -> None:
            nonlocal shown
            tell(
                competition_id,
                "split",
                f"{progress.files} of {progress.files_total} files",
                progress.bytes,
                progress.bytes_total,
            )
            share = 100.0 * progress.files / max(progress.files_total, 1)
            if share - shown >= 5 or share == 100.0:  # each update is a request to the server
                shown = share
                update_progress_artifact(artifact, share)  # type: ignore[arg-type]

        tell(competition_id, "split", "planning")
        job = Job(
            competition_id,
            raw=place.raw(competition_id),
            out=place.prepared(dataset),
            edition=edition,
            params=get_settings().params_of(competition_id),
            key=key,
        )
        executor = DaskExecutor(dask_address, set_up=apply_settings)
        materialise(job, executor=executor, on_progress=show, before_commit=mine.check)
    return key
