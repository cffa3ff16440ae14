"""Remove a prepared dataset from a store."""

from __future__ import annotations

import contextlib

from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.current import USES, all_datasets, current_url, read_current, read_marker
from storage.datasets.uses import is_used
from storage.store import Store


def remove_dataset(store: Store, dataset: Dataset) -> bool:
    """Remove a dataset unless somebody uses it; returns whether it was removed. Hold the lease for preparing it.

    The marker goes first: whoever starts to use the dataset records that before looking for the marker, so that either
    the use is seen here, or the missing marker there. Of a dataset with the files of another edition, only the note
    that it has them is removed.
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
    """Remove `current.json`, and the folder of the competition, if nothing is left to know.

    That other recipes make the same dataset stays known: its runs have its key, and it may be prepared again.
    """
    known = read_current(store, dataset)
    others = any(all_datasets(store, dataset.edition, dataset.competition_id))
    if known.dataset is not None or others or any(recipe.key != key for recipe, key in known.recipes):
        return
    store.remove(current_url(store, dataset))
    folder = store.local(store.relative(store.datasets(dataset)))
    with contextlib.suppress(OSError):  # it is not empty; object stores have no folders
        if folder is not None:
            folder.rmdir()
