"""Stores as tests use them."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.current import make_current
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.store import Store as AnyStore
from tests.bundles import bundle


class Store(AnyStore):
    """A store in a local directory, in which a record that is read is known to exist."""

    def local(self, *parts: str | int) -> Path:
        path = super().local(*parts)
        assert path is not None
        return path

    def read_json(self, url: str) -> Any:
        return super().read_json(url)


class KeptStore:
    """A store that is made once, for tests that each begin with it as it was made.

    All have it in the same place, because grades and reports name the paths of submissions.
    """

    def __init__(self, made: Store) -> None:
        self._place = made.local()
        self._kept = self._place.rename(self._place.with_name("kept"))

    @contextlib.contextmanager
    def copied(self) -> Iterator[Store]:
        shutil.copytree(self._kept, self._place)
        try:
            yield Store(str(self._place))
        finally:
            shutil.rmtree(self._place)


def put_dataset(
    store: AnyStore, competition_id: str, raw: Path | str | None = None, edition: Edition = "v1", key: str = "k"
) -> Dataset:
    """Prepare a dataset under any key and make it current. It is made of the archive in the store, or of `raw`."""
    dataset = Dataset(edition, competition_id, key)
    if raw is None and not store.exists(store.raw(competition_id)):
        store.write(store.raw(competition_id), bundle(competition_id))
    source = store.raw(competition_id) if raw is None else str(raw)
    materialise(Job(competition_id, source, store.prepared(dataset), edition, key=key))
    make_current(store, dataset)
    return dataset


def copy_dataset(store: Store, competition_id: str, prepared: Path, edition: Edition = "v1", key: str = "k") -> Path:
    """Put a dataset that was prepared into a directory under any key, and make it current. Returns its folder."""
    dataset = Dataset(edition, competition_id, key)
    folder = shutil.copytree(prepared, store.local("prepared", edition, competition_id, key))
    marker = json.loads((prepared / MARKER).read_text())
    store.write_json(f"{store.prepared(dataset)}/{MARKER}", {**marker, "key": key})
    make_current(store, dataset)
    return folder
