"""Verify prepared datasets: compare MD5s with the published benchmark, and sizes in the store with the manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from common.concurrency import parallel_map
from common.errors import UserError
from common.units import listed
from competitions.preparing.archives.listing import files_below
from storage.dataset import Dataset
from storage.datasets.commit import MANIFEST, MARKER
from storage.datasets.current import find, not_prepared, require
from storage.datasets.job import Preparable
from storage.datasets.manifest import StoredManifest
from storage.keys import content_key
from storage.lease import lease, prepare_lease
from storage.store import Store
from storage.writers import BLOCK_BYTES

MAX_NAMED_FILES = 1_000  # maximum number of damaged files that are named
VERIFIED = "verified.json"
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".bson")


class ChecksumMismatch(UserError):
    """Prepared files differ from those of the published benchmark."""

    kind = "damaged data"


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: number of files compared with known MD5s, different files, missing or truncated files."""

    compared: int
    different: list[str]
    damaged: list[str]


def read_manifest(store: Store, dataset: Dataset) -> StoredManifest:
    """The manifest of a prepared dataset. Raises `UserError` if the dataset is not prepared."""
    try:
        return StoredManifest(store.read(f"{store.prepared(dataset)}/{MANIFEST}"))
    except FileNotFoundError:
        raise not_prepared(store, dataset) from None


def published_checksums(dataset: Dataset, competition: Preparable) -> Mapping[str, str]:
    """The MD5s by path that the prepared files must have: those of the published benchmark, for files of edition v1."""
    return competition.facts.checksums.prepared if dataset.home == "v1" else {}


def check_dataset(store: Store, dataset: Dataset, competition: Preparable) -> int:
    """Verify a dataset and record that it passed. Returns the number of files compared with published MD5s.

    Raises `ChecksumMismatch` naming files that are damaged or differ from the published benchmark. The commit marker of
    a damaged dataset is removed, so that no reader finds it and the next preparation writes its files again; they have
    the same bytes, so agents that still read the others are not disturbed.
    """
    committed = require(store, dataset)
    result = verify(store, committed, competition)
    if result.damaged:
        with lease(store, prepare_lease(committed)):
            result = verify(store, committed, competition)  # another process may just have repaired it
            if result.damaged:
                store.remove(f"{store.prepared(committed)}/{VERIFIED}")
                store.remove(f"{store.prepared(committed)}/{MARKER}")
    if result.damaged:
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {listed(result.damaged)} missing or of the wrong size; run prepare again"
        )
    if result.different:
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {listed(result.different)} differ from the published benchmark; check that the "
            "download is the right one, or pass --skip-verification to use the files"
        )
    if not is_verified(store, committed, competition):
        store.write_json(f"{store.prepared(committed)}/{VERIFIED}", verified_record(committed, competition))
    return result.compared


def is_verified(store: Store, dataset: Dataset, competition: Preparable) -> bool:
    """Whether the dataset with this key has passed `check_dataset` with the present checksums of the competition."""
    committed = find(store, dataset)
    record = store.read_json(f"{store.prepared(committed)}/{VERIFIED}") if committed else None
    return committed is not None and record is not None and record == verified_record(committed, competition)


def verified_record(dataset: Dataset, competition: Preparable) -> dict[str, Any]:
    """The content of `verified.json` of a dataset that has passed, without checksums that are added later."""
    return {"key": dataset.key, "checksums": content_key(published_checksums(dataset, competition))}


def verify(store: Store, dataset: Dataset, competition: Preparable) -> Verification:
    """Compare the manifest with the MD5s in competition.yaml, and the sizes of stored files with the manifest.

    The manifest has the MD5s that were known when the dataset was made. Those of other files are computed here.
    Manifest and listing of an object store are read in batches, so memory does not depend on the number of
    files, and on a local disk only that of the manifest does.
    """
    expected = published_checksums(dataset, competition)
    missing, different = set(expected), []
    damaged: list[str] = []
    unknown: list[str] = []
    root = store.relative(store.prepared(dataset))
    stored = _stored(store, root)
    for path, size, md5 in manifest_rows(store, dataset):
        intact = len(damaged) >= MAX_NAMED_FILES or stored.has(path, size)
        if not intact:
            damaged.append(path)
        if path in missing:
            missing.remove(path)
            if md5 is None and intact:
                unknown.append(path)
            elif md5 != expected[path]:
                different.append(path)
    md5s = parallel_map(lambda path: _md5(store, f"{root}/{path}"), unknown)
    different += [path for path, md5 in zip(unknown, md5s, strict=True) if md5 != expected[path]]
    return Verification(len(expected), sorted([*different, *missing]), damaged)


def manifest_rows(store: Store, dataset: Dataset) -> Iterator[tuple[str, int, str | None]]:
    """Yield (path with its part, bytes, MD5) of each file in the manifest, sorted by path.

    Raises `UserError` if the dataset is not prepared.
    """
    for part, path, size, md5 in read_manifest(store, dataset).rows("part", "path", "bytes", "md5"):
        yield f"{part}/{path}", size, md5


def md5s_of_tables(store: Store, dataset: Dataset, known: Container[str] = ()) -> dict[str, str]:
    """The MD5s, by path, of tables at the top of both parts, and of the files in `known`, sorted as in the manifest.

    Raises `UserError` if the dataset is not prepared.
    """
    root = store.relative(store.prepared(dataset))
    return {
        path: md5 or _md5(store, f"{root}/{path}")
        for path, _, md5 in manifest_rows(store, dataset)
        if path in known or (path.count("/") == 1 and path.endswith(_TABLES))
    }


def _md5(store: Store, path: str) -> str:
    digest = hashlib.md5()
    with store.top.fs.open(store.top.path(path), "rb") as file:
        while piece := file.read(8 * BLOCK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


class _Stored(Protocol):
    def has(self, path: str, size: int) -> bool:
        """Whether the file exists with that size. Paths must be passed in ascending order, each once."""
        ...


def _stored(store: Store, root: str) -> _Stored:
    folder = store.local(root)
    return _OnDisk(folder) if folder is not None else _Listed(store.top.fs, store.top.path(root))


class _OnDisk:
    """Files on a local disk. fsspec's listing would take 1 GB for half a million files."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def has(self, path: str, size: int) -> bool:
        try:
            return os.stat(f"{self._folder}/{path}").st_size == size  # noqa: PTH116  # three times as fast
        except OSError:
            return False


class _Listed:
    """Files of an object store in a sorted listing, which is read as far as it is needed."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs, self._root = fs, root
        self._listing = files_below(fs, root)
        self._next = next(self._listing, None)

    def has(self, path: str, size: int) -> bool:
        while self._next is not None and self._next[0] < path:
            self._next = next(self._listing, None)
        return self._next == (path, size) or self._really_has(path, size)

    def _really_has(self, path: str, size: int) -> bool:
        """Request a single file, because a few stores do not sort their listings."""
        try:
            return bool(self._fs.size(f"{self._root}/{path}") == size)
        except FileNotFoundError:
            return False
