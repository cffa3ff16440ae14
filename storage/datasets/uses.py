"""Uses of prepared datasets by agents and graders, and the removal of datasets that nobody uses.

Uses are recorded in `prepared/<edition>/<id>/<key>.uses/`: in a local store as locked files (`storage.uses`), in other
stores as objects that are renewed (`storage.remote_uses`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from common.causes import cause_of
from storage import remote_uses, uses
from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.current import USES, all_datasets, current_url, read_current, read_marker, require
from storage.store import Store
from storage.uses import Continuing


@contextlib.contextmanager
def use(store: Store, dataset: Dataset, continuing: Continuing | None = None) -> Iterator[Dataset]:
    """Find a dataset and keep it from being removed for the block. Yields it with its key.

    In a read-only store, nothing is recorded, because the users of such a store cannot remove anything either.

    Args:
        store: store of the dataset.
        dataset: the dataset; without a key the current one.
        continuing: a run that uses the dataset even if this process is killed.

    Raises:
        UserError: there is no such dataset.
    """
    committed = require(store, dataset)
    with contextlib.ExitStack() as record:
        try:
            record.enter_context(_recorded(store, committed, continuing))
        except Exception as error:
            if cause_of(error).kind != "refused":
                raise
        # A process that removes a dataset removes its marker and then looks for uses: it sees this use, or the
        # marker is missing here.
        yield require(store, committed)


def is_used(store: Store, dataset: Dataset) -> bool:
    """Whether anybody uses a dataset at this moment."""
    url = uses_url(store, dataset)
    local_folder = store.local(store.relative(url))
    return uses.in_use(local_folder, shared=True) if local_folder is not None else remote_uses.in_use(store, url)


def uses_url(store: Store, dataset: Dataset) -> str:
    """URL of the folder with the uses of a dataset."""
    return f"{store.datasets(dataset)}/{dataset.key}{USES}"


def _recorded(store: Store, dataset: Dataset, continuing: Continuing | None) -> contextlib.AbstractContextManager[None]:
    url = uses_url(store, dataset)
    local_folder = store.local(store.relative(url))
    return uses.use(local_folder, continuing) if local_folder is not None else remote_uses.use(store, url, continuing)


def remove_dataset(store: Store, dataset: Dataset) -> bool:
    """Remove a dataset unless somebody uses it; returns whether it was removed. Hold the lease for preparing it.

    The marker is removed first. A process that starts to use the dataset records its use before it reads the marker, so
    that either this process sees the use, or that process misses the marker. If the dataset has the files of another
    edition, only the record of this is removed.
    """
    if dataset.files_of:
        store.remove(current_url(store, dataset))
        return True
    marker_url = f"{store.prepared(dataset)}/{MARKER}"
    marker = read_marker(store, dataset)
    store.remove(marker_url)
    if is_used(store, dataset):
        if marker is not None:
            store.write_json(marker_url, marker)
        return False
    store.remove(store.prepared(dataset))
    store.remove(f"{store.datasets(dataset)}/{dataset.key}{USES}")
    _forget(store, dataset)
    return True


def _forget(store: Store, dataset: Dataset) -> None:
    """Remove `current.json`, and the folder of the competition, if they have no more information.

    Other recipes of the same dataset are kept, because runs have its key, and it may be prepared again.
    """
    current = read_current(store, dataset)
    has_datasets = any(all_datasets(store, dataset.edition, dataset.competition_id))
    if current.dataset is not None or has_datasets or any(recipe.key != key for recipe, key in current.recipes):
        return
    store.remove(current_url(store, dataset))
    folder = store.local(store.relative(store.datasets(dataset)))
    with contextlib.suppress(OSError):  # it is not empty; object stores have no folders
        if folder is not None:
            folder.rmdir()
