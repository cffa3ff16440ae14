"""Step 2: split the data into a new train and test set, and write the prepared dataset, on Dask."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact

from common import progress
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.cluster import DaskExecutor
from storage.datasets.job import Job
from storage.datasets.materialise import Executor, Progress, materialise
from storage.datasets.prepared import committed_key, prepared_key
from storage.lease import lease, prepare_lease
from storage.sources.wants import no_longer_wanted
from tasks.wiring.caching import while_stored
from tasks.wiring.process import apply_settings
from tasks.wiring.retries import retried
from tasks.wiring.server import shown
from tasks.wiring.slots import slot
from tasks.wiring.stores import open_store


def split_key(competition_id: str, download_hash: str, edition: Edition) -> str:
    """The content key of the dataset that `split` makes from a download."""
    params = get_settings().params_of(competition_id)
    return prepared_key(registry.get(competition_id), download_hash, edition, params)


def _stored_key(competition_id: str, store: str, edition: Edition, download_hash: str, **_: str) -> str | None:
    # The store is opened first, because that applies the settings, which can add competitions.
    place = open_store(store)
    key = split_key(competition_id, download_hash, edition)
    return key if committed_key(place, Dataset(edition, competition_id)) == key else None


@task(
    name="split",
    task_run_name="split {competition_id}",
    persist_result=True,
    cache_key_fn=while_stored(_stored_key),
    **retried(),
)
def split(competition_id: str, store: str, edition: Edition, dask_address: str, download_hash: str) -> str:
    """Prepare the dataset of a download on Dask and show progress in the Prefect UI; see `split_dataset`."""
    artifact = _ProgressArtifact(f"prepare {competition_id} {edition}")
    executor = DaskExecutor(
        dask_address,
        set_up=apply_settings,
        on_wait=lambda reason: progress.report(competition_id, "waiting", reason),
        patience=get_settings().patience,
    )
    return split_dataset(competition_id, store, edition, download_hash, executor, artifact.show)


def split_dataset(
    competition_id: str,
    store: str,
    edition: Edition,
    download_hash: str,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> str:
    """Prepare the dataset of a download unless it is already in the store; returns its content key.

    Without an executor, the work is done in this process.
    """
    place, dataset = open_store(store), Dataset(edition, competition_id)
    key = split_key(competition_id, download_hash, edition)

    def waiting(reason: str) -> None:
        progress.report(competition_id, "waiting", reason)

    def show(made: Progress) -> None:
        files = f"{made.files} of {made.files_total} files"
        progress.report(competition_id, "split", files, made.bytes, made.bytes_total)
        on_progress(made)

    with (
        slot("preparations", get_settings().preparations),
        lease(place, prepare_lease(dataset), on_wait=waiting) as mine,
    ):
        assert mine is not None
        if committed_key(place, dataset) == key:
            no_longer_wanted(place, dataset)
            return key
        progress.report(competition_id, "split", "planning")
        job = Job(
            competition_id,
            raw=place.raw(competition_id),
            out=place.prepared(dataset),
            edition=edition,
            params=get_settings().params_of(competition_id),
            key=key,
            code=registry.get(competition_id).fingerprint("prepare"),
        )
        materialise(job, executor=executor, on_progress=show, before_commit=mine.require_held)
        no_longer_wanted(place, dataset)
    return key


_PAUSE = 60.0


class _ProgressArtifact:
    """A progress bar in the Prefect UI."""

    def __init__(self, description: str) -> None:
        self._description, self._shown, self._failed = description, 0.0, -math.inf
        self._id: Any = None  # a UUID once the bar exists

    def show(self, made: Progress) -> None:
        """Create the bar, or update it if it has moved by 5 %: each update is a request to the server.

        After a failure it waits for a minute: the work must not.
        """
        if time.monotonic() - self._failed < _PAUSE:
            return
        self._failed = time.monotonic()
        with shown(f"the progress of {self._description}"):
            self._show(made)
            self._failed = -math.inf

    def _show(self, made: Progress) -> None:
        share = 100.0 * made.files / max(made.files_total, 1)
        if self._id is None:
            self._id = create_progress_artifact(share, description=self._description)
        elif share - self._shown >= 5 or share == 100.0:
            update_progress_artifact(self._id, share)
        else:
            return
        self._shown = share
