"""Disk usage of the store and of the local scratch disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from competitions.editions import EDITIONS
from storage.cache import Cache
from storage.datasets.materialise import MARKER
from storage.store import Store

Kind = Literal["raw", "prepared", "runs", "tables", "reports", "locks", "cache", "scratch"]
State = Literal["", "complete", "incomplete", "in use"]


@dataclass(frozen=True)
class DiskUsage:
    """An item that takes space: its location (a URL or a local path), its bytes and its number of files."""

    kind: Kind
    name: str
    where: str
    bytes: int
    files: int
    state: State = ""


def usage_of_store(store: Store) -> Iterator[DiskUsage]:
    """Yield all items below the root. Sizes of complete datasets come from their commit marker, without a listing."""
    for folder in _folders(store, "raw"):
        yield _listed(store, "raw", folder, f"raw/{folder}")
    for edition in EDITIONS:
        for folder in _folders(store, f"prepared/{edition}"):
            yield _dataset(store, edition, folder)
    for folder in _folders(store, "runs"):
        yield _listed(store, "runs", folder, f"runs/{folder}")
    kinds: tuple[Kind, ...] = ("tables", "reports", "locks")
    for kind in kinds:
        found = _listed(store, kind, "", kind)
        if found.files:
            yield found


def usage_of_machine(scratch: Path, cache: Cache) -> Iterator[DiskUsage]:
    """Yield local copies of prepared data, and folders of agents' runs on the scratch disk."""
    for entry in cache.entries():
        state: State = "in use" if entry.in_use else "complete" if entry.complete else "incomplete"
        yield DiskUsage("cache", entry.label, entry.digest, entry.bytes, 0, state)
    runs = scratch / "runs"
    for folder in sorted(runs.iterdir()) if runs.is_dir() else ():
        sizes = [path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
        yield DiskUsage("scratch", folder.name, str(folder), sum(sizes), len(sizes))


def _dataset(store: Store, edition: str, competition_id: str) -> DiskUsage:
    where, name = f"prepared/{edition}/{competition_id}", f"{edition} {competition_id}"
    marker: dict[str, Any] | None = store.read_json(store.url(where, MARKER))
    if marker is None:
        return _listed(store, "prepared", name, where, "incomplete")
    return DiskUsage("prepared", name, store.url(where), marker["bytes"], marker["files"], "complete")


def _listed(store: Store, kind: Kind, name: str, where: str, state: State = "") -> DiskUsage:
    found = store.top.fs.find(store.top.path(where), detail=True)
    return DiskUsage(kind, name, store.url(where), sum(info["size"] or 0 for info in found.values()), len(found), state)


def _folders(store: Store, where: str) -> list[str]:
    """Names of the folders directly below `where`."""
    try:
        found = store.top.fs.ls(store.top.path(where), detail=True)
    except FileNotFoundError:
        return []
    return sorted(info["name"].rstrip("/").rsplit("/", 1)[1] for info in found if info["type"] == "directory")
