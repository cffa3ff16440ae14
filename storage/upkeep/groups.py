"""Removing a run group: everything that the store has of it."""

from __future__ import annotations

from functools import partial

from storage.schemas import TABLES
from storage.store import Store


def group_names(store: Store) -> list[str]:
    """The names of all run groups, also of those without a finished run."""
    return sorted({*store.folder_names("runs"), *store.folder_names("manifests")})


def parts_of(store: Store, run_group: str) -> list[str]:
    """URLs of the existing folders of a group, in the order in which they are to be removed.

    Tables and reports come first, and the manifest last: a partly removed group can be removed again, and its evidence
    shows what is missing.
    """
    urls = [
        *(store.url("tables", table, f"run_group={run_group}") for table in TABLES),
        store.url("reports", run_group),
        store.url("live", run_group),
        store.url("checkpoints", run_group),
        store.url("runs", run_group),
        store.url("locks", "run", run_group),
        store.url("manifests", run_group),
    ]
    exist = store.concurrently([partial(store.exists, url) for url in urls])
    return [url for url, exists in zip(urls, exist, strict=True) if exists]


def remove_group(store: Store, run_group: str) -> None:
    """Remove a group. Can be repeated after an interruption."""
    for url in parts_of(store, run_group):
        store.remove(url)
