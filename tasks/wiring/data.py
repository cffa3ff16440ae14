"""A place for an agent on this host, with the data of its competition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from common.settings import get_settings
from storage.dataset import Dataset
from storage.datasets.prepared import local_copy
from storage.store import Store
from storage.uses import Continuing
from tasks.wiring.slots import slot
from tasks.wiring.stores import local_cache


@contextlib.contextmanager
def slot_with_data(
    place: Store, dataset: Dataset, continuing: Continuing | None, on_wait: Callable[[str], None]
) -> Iterator[Path]:
    """Hold a slot for an agent, and a local copy of the dataset. Yields the directory that contains the public files.

    The copy is fetched before the slot is taken, so no slot is idle during a fetch, and the next runs have their data
    when a slot becomes free. At most as many runs fetch or wait with their data as run at a time.

    Args:
        place: store of the dataset.
        dataset: the dataset.
        continuing: a run that uses the copy even if this process is killed.
        on_wait: called with what the copy waits for.
    """
    agents, cache = get_settings().agents, local_cache()
    with contextlib.ExitStack() as held:
        with slot("copies", agents), contextlib.ExitStack() as ahead:
            ahead.enter_context(local_copy(place, dataset, "public", cache, on_wait=on_wait, within_limit=True))
            held.enter_context(slot("agents", agents))
            prepared = held.enter_context(local_copy(place, dataset, "public", cache, continuing, on_wait))
        yield prepared
