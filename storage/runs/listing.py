"""Find the folders of a group's runs on an object store with few requests, whoever wrote them.

Object stores have no folders: a listing level by level takes a request for each group, competition and run. A flat
listing has a thousand names in a request, and the names in large subfolders of runs, such as `code/`, are skipped.
Where a group has so many files that this takes more than a few requests, one request for each further competition
lists its seeds. Nothing is remembered between calls, so no run is hidden or invented.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from storage.store import Store

_MAX_SEQUENTIAL_PAGES = 8  # after as many requests, competitions are listed concurrently
_PAGE_NAMES = 1_000  # names in a request; S3 allows no more
_LAST_NAME = "\U0010ffff"  # sorts after every other name in a folder


@dataclass(frozen=True)
class Listed:
    """A folder in which there may be a run. `files` are the names of the files directly in it; None if not listed."""

    competition_id: str
    seed: str
    files: frozenset[str] | None = None


def list_group(store: Store, run_group: str, competition_id: str | None = None) -> list[Listed]:
    """The folders of a group, or of one competition in it, in any order. Their names are not checked."""
    where = f"runs/{run_group}"
    listed, next_name = _listed_flat(store, where, competition_id) if "s3" in store.top.fs.protocol else ([], "")
    if next_name is None:
        return listed
    names = store.folder_names(where) if competition_id is None else [competition_id]
    remaining_names = [name for name in names if f"{name}/" >= next_name]
    for found in store.concurrently([partial(_seeds, store, where, name) for name in remaining_names]):
        listed += found
    return listed


def _listed_flat(store: Store, where: str, competition_id: str | None) -> tuple[list[Listed], str | None]:
    """The folders in the first pages of a flat listing, and the name from which on it is incomplete, or None.

    A few stores do not sort their listings; then the whole listing counts as incomplete.
    """
    fs: Any = store.top.fs
    bucket, prefix, _ = fs.split_path(store.top.path(where) + "/")
    listed_prefix = prefix if competition_id is None else f"{prefix}{competition_id}/"
    folders: dict[tuple[str, str], set[str]] = {}
    continuation: dict[str, str] = {}
    last_name = ""
    for _ in range(_MAX_SEQUENTIAL_PAGES):
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=listed_prefix, MaxKeys=_PAGE_NAMES, **continuation)
        names = [entry["Key"].removeprefix(prefix) for entry in page.get("Contents", ())]
        if names != sorted(names) or (names and names[0] <= last_name):
            return [], ""
        for name in names:
            competition, _, path = name.partition("/")
            seed, slash, file = path.partition("/")
            if slash:
                files = folders.setdefault((competition, seed), set())
                if "/" not in file:
                    files.add(file)
        if not page.get("IsTruncated"):
            return _as_listed(folders), None
        last_name = names[-1] if names else last_name
        parts = last_name.split("/")
        if len(parts) > 3:  # within a subfolder of a run, whose other files do not matter
            continuation = {"StartAfter": f"{prefix}{'/'.join(parts[:3])}/{_LAST_NAME}"}
        else:
            continuation = {"ContinuationToken": page["NextContinuationToken"]}
    next_folder = last_name.split("/")[0] + "/"
    return _as_listed({key: files for key, files in folders.items() if f"{key[0]}/" < next_folder}), next_folder


def _as_listed(folders: dict[tuple[str, str], set[str]]) -> list[Listed]:
    return [Listed(competition, seed, frozenset(files)) for (competition, seed), files in folders.items()]


def _seeds(store: Store, where: str, competition_id: str) -> list[Listed]:
    return [Listed(competition_id, seed) for seed in store.folder_names(f"{where}/{competition_id}")]
