"""Disk usage of the store and of the local scratch disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from competitions.editions import Edition
from competitions.preparing.archives.listing import sizes_below, sizes_on_disk
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import all_datasets, competitions_of, read_current, read_marker
from storage.store import Store

Kind = Literal[
    "raw",
    "prepared",
    "runs",
    "episodes",
    "tables",
    "reports",
    "locks",
    "live",
    "checkpoints",
    "cache",
    "scratch",
    "roots",
]
State = Literal["", "complete", "old", "incomplete", "in use", "damaged"]
"""Of a dataset: current and complete, complete but no longer current, or incomplete. Of a local copy: in use. Of a root
file system: damaged, so that it has to be built again."""


@dataclass(frozen=True)
class DiskUsage:
    """An item that takes space: its location (a URL or a local path), its bytes and its number of files."""

    kind: Kind
    name: str
    where: str
    bytes: int
    files: int
    state: State = ""
    dataset: Dataset | None = None
    """The dataset, if it is one."""


def usage_of_store(store: Store) -> Iterator[DiskUsage]:
    """Yield all items below the root. Sizes of complete datasets come from their commit marker, without a listing."""
    for folder in store.folder_names("raw"):
        yield _listed(store, "raw", folder, f"raw/{folder}")
    for edition, competition_id in competitions_of(store):
        yield from usage_of_datasets(store, edition, competition_id)
    groups: tuple[Kind, ...] = ("runs", "episodes")
    for kind in groups:
        for folder in store.folder_names(kind):
            yield _listed(store, kind, folder, f"{kind}/{folder}")
    kinds: tuple[Kind, ...] = ("tables", "reports", "locks", "live", "checkpoints")
    for kind in kinds:
        usage = _listed(store, kind, "", kind)
        if usage.files:
            yield usage


def usage_of_machine(scratch: Path, cache: Cache) -> Iterator[DiskUsage]:
    """Yield local copies of prepared data, and folders of agents' runs and of episodes on the scratch disk."""
    for entry in cache.entries():
        state: State = "in use" if entry.in_use else "complete" if entry.complete else "incomplete"
        yield DiskUsage("cache", entry.label, entry.digest, entry.bytes, 0, state)
    for top in (scratch / "runs", scratch / "episodes"):
        for folder in sorted(path for path in top.iterdir() if path.is_dir()) if top.is_dir() else ():
            yield DiskUsage("scratch", folder.name, str(folder), *_total(sizes_on_disk(str(folder))))


def usage_of_datasets(store: Store, edition: Edition, competition_id: str) -> Iterator[DiskUsage]:
    """Yield the datasets of a competition in an edition, the current one and others."""
    current = read_current(store, Dataset(edition, competition_id)).dataset
    name = f"{edition} {competition_id}"
    if current is not None and current.files_of:
        label, where = f"{name}, shared with {current.files_of}", store.prepared(current)
        yield DiskUsage("prepared", label, where, 0, 0, "complete", current)
    for dataset in all_datasets(store, edition, competition_id):
        marker = read_marker(store, dataset)
        if marker is not None:
            state: State = "complete" if dataset == current else "old"
            where = store.prepared(dataset)
            yield DiskUsage("prepared", name, where, marker["bytes"], marker["files"], state, dataset)
            continue
        where = store.prepared(dataset)
        sizes = _sizes(store.top.fs, store.top.path(store.relative(where)))
        yield DiskUsage("prepared", name, where, *_total(sizes), "incomplete", dataset)


def _listed(store: Store, kind: Kind, name: str, where: str, state: State = "") -> DiskUsage:
    return DiskUsage(kind, name, store.url(where), *_total(_sizes(store.top.fs, store.top.path(where))), state)


def _sizes(fs: Any, path: str) -> Iterator[int]:
    """The sizes of the files in a folder, or the size of a file; nothing if neither exists."""
    with contextlib.suppress(FileNotFoundError):
        info = fs.info(path)
        if info["type"] == "file":
            yield info["size"]
        yield from sizes_below(fs, path)


def _total(sizes: Iterable[int]) -> tuple[int, int]:
    """The sum of the sizes, and their number."""
    total = count = 0
    for size in sizes:
        total, count = total + size, count + 1
    return total, count
