"""Verify prepared datasets: compare MD5s with the published benchmark, and sizes in the store with the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.errors import UserError
from competitions.preparing.archives.containers import DirectoryContainer, RemoteDirectory
from storage.dataset import Dataset
from storage.datasets.job import Preparable
from storage.datasets.materialise import MANIFEST
from storage.frames import read_frame
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd


class ChecksumMismatch(UserError):
    """Prepared files differ from those of the published benchmark."""

    kind = "damaged data"


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: number of files compared with known MD5s, different files, missing or truncated files."""

    compared: int
    different: list[str]
    damaged: list[str]


def read_manifest(store: Store, dataset: Dataset) -> pd.DataFrame:
    """The manifest of a prepared dataset. Raises `UserError` if the dataset is not prepared."""
    manifest = read_frame(store, f"{store.prepared(dataset)}/{MANIFEST}")
    if manifest is None:
        raise UserError(f"{dataset} is not prepared in {store.root}; run: mlebench prepare -c {dataset.competition_id}")
    return manifest


def verify(store: Store, dataset: Dataset, competition: Preparable) -> Verification:
    """Compare the manifest with the MD5s in competition.yaml, and the sizes of stored files with the manifest."""
    manifest = read_manifest(store, dataset)
    paths = manifest["part"] + "/" + manifest["path"]
    md5s = dict(zip(paths, manifest["md5"], strict=True))
    expected = competition.facts.checksums.prepared if dataset.edition == "v1" else {}
    different = [path for path, md5 in sorted(expected.items()) if md5s.get(path) != md5]
    root = store.relative(store.prepared(dataset))
    sizes = _sizes(store, root)
    damaged = [path for path, size in zip(paths, manifest["bytes"], strict=True) if sizes.get(path) != size]
    return Verification(len(expected), different, damaged)


def _sizes(store: Store, root: str) -> Mapping[str, int]:
    """Size of each file below `root`, from `stat` on a local disk and from listings otherwise."""
    folder = store.local(root)
    if folder is not None:
        # fsspec's listing has a dozen fields per file and would take 1 GB for half a million files.
        return DirectoryContainer(folder).sizes if folder.is_dir() else {}
    return RemoteDirectory(store.top.fs, store.top.path(root)).sizes
