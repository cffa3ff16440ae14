"""Step 3: the prepared files are those of the published benchmark."""

from __future__ import annotations

import contextlib
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from common.progress import tell
from competitions import registry
from competitions.editions import EDITIONS, Edition
from storage.datasets.prepared import check, is_verified
from storage.lease import lease, prepare_lease
from storage.sources.acquire import discard_archive
from storage.store import Store


def _cache_key(_context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    store, edition, key = Store(parameters["store"]), parameters["edition"], parameters["key"]
    return f"checksum-{key}" if is_verified(store, edition, parameters["competition_id"], key) else None


@task(name="checksum", task_run_name="checksum {competition_id}", persist_result=True, cache_key_fn=_cache_key)
def checksum(competition_id: str, store: str, edition: Edition, key: str, keep_raw: bool = False) -> int:
    """Compare with the MD5s in competition.yaml; returns how many were compared. Then raw data can go."""
    tell(competition_id, "checksum")
    compared = check(Store(store), registry.get(competition_id), edition, key)
    if not keep_raw:
        _discard(Store(store), competition_id, edition)
    return compared


def _discard(store: Store, competition_id: str, edition: Edition) -> None:
    """Remove the archive, unless another process makes the other edition of it at this moment; that one will."""
    with contextlib.ExitStack() as held:
        for other in EDITIONS:
            name = prepare_lease(competition_id, other)
            if other != edition and held.enter_context(lease(store, name, wait=False)) is None:
                return
        discard_archive(store, competition_id)
