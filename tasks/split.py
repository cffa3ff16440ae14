"""Step 2: the prepared dataset, materialised on Dask."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext
from prefect.tasks import exponential_backoff

from common.progress import tell
from common.settings import get_settings, params_of
from competitions import registry
from competitions.editions import Edition
from storage.datasets.cluster import DaskExecutor
from storage.datasets.materialise import Progress, materialise
from storage.datasets.prepared import committed_key
from storage.keys import prepared_key
from storage.lease import lease, prepare_lease
from storage.store import Store
from tasks.wiring.retries import can_pass
from tasks.wiring.slots import slot


def split_key(competition_id: str, download_hash: str, edition: Edition) -> str:
    """The content key of the dataset that `split` makes of a download."""
    return prepared_key(registry.get(competition_id), download_hash, edition, params_of(competition_id))


def _cache_key(_context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    """A cached result counts only while the store has the dataset that it stands for."""
    competition_id, edition = parameters["competition_id"], parameters["edition"]
    key = split_key(competition_id, parameters["download_hash"], edition)
    return f"split-{key}" if committed_key(Store(parameters["store"]), edition, competition_id) == key else None


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
    place = Store(store)

    def waiting(reason: str) -> None:
        tell(competition_id, "waiting", reason)

    with (
        slot("preparations", get_settings().preparations),
        lease(place, prepare_lease(competition_id, edition), on_wait=waiting) as mine,
    ):
        assert mine is not None
        if committed_key(place, edition, competition_id) == key:
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
            if share - shown >= 5 or share == 100.0:  # every update is a request to the server
                shown = share
                update_progress_artifact(artifact, share)  # type: ignore[arg-type]

        tell(competition_id, "split", "planning")
        materialise(
            competition_id,
            place.raw(competition_id),
            place.prepared(edition, competition_id),
            edition=edition,
            params=params_of(competition_id),
            executor=DaskExecutor(dask_address),
            key=key,
            on_progress=show,
            before_commit=mine.check,
        )
    return key
