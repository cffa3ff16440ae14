"""Removing a run group, or the episodes of a training: everything that the store has of it."""

from __future__ import annotations

from functools import partial

from storage.schemas import TABLES
from storage.store import Store


def group_names(store: Store, episodes: bool = False) -> list[str]:
    """The names of all run groups, also of those without a finished run; of all trainings with `episodes`."""
    tops = ("episodes",) if episodes else ("runs", "manifests")
    return sorted({name for top in tops for name in store.folder_names(top)})


def parts_of(store: Store, name: str, episodes: bool = False) -> list[str]:
    """URLs of the existing folders of a run group or a training, in the order in which they are to be removed.

    Tables and reports come first, and the manifest last: a partly removed group can be removed again, and its evidence
    shows what is missing.
    """
    tables = [table for table in TABLES if (table == "episodes") == episodes]
    urls = [store.url("tables", table, f"run_group={name}") for table in tables]
    if episodes:
        urls.append(store.url("episodes", name))
    else:
        urls += [
            store.url("reports", name),
            store.url("live", name),
            store.url("checkpoints", name),
            store.url("runs", name),
            store.url("locks", "run", name),
            store.url("manifests", name),
        ]
    exist = store.concurrently([partial(store.exists, url) for url in urls])
    return [url for url, exists in zip(urls, exist, strict=True) if exists]


def remove_group(store: Store, name: str, episodes: bool = False) -> None:
    """Remove a run group, or a training. Can be repeated after an interruption."""
    for url in parts_of(store, name, episodes):
        store.remove(url)
