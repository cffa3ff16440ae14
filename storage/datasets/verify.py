"""Is a prepared dataset what it should be? MD5s of the real files, and a cheap check of what lies in the store."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.errors import UserError
from competitions.competition import Competition
from competitions.editions import Edition
from competitions.preparing.archives.containers import DirectoryContainer, RemoteDirectory
from storage.datasets.materialise import MANIFEST
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd


class ChecksumMismatch(UserError):
    """Prepared files differ from those of the published benchmark."""


@dataclass(frozen=True)
class Verification:
    """What `verify` found: files compared with known MD5s, those that differ, those that are gone or cut."""

    compared: int
    different: list[str]
    damaged: list[str]


def read_manifest(store: Store, edition: Edition, competition_id: str) -> pd.DataFrame:
    """The manifest of a prepared dataset, one row a file. Raises `UserError` if it is not prepared."""
    import pandas as pd

    path = store.top.path(store.relative(store.prepared(edition, competition_id)) + f"/{MANIFEST}")
    try:
        return pd.read_parquet(io.BytesIO(store.top.fs.cat_file(path)))
    except FileNotFoundError as error:
        raise UserError(
            f"{competition_id} ({edition}) is not prepared in {store.root}; run: mlebench prepare -c {competition_id}"
        ) from error


def verify(store: Store, competition: Competition, edition: Edition) -> Verification:
    """Compare the manifest with the MD5s in competition.yaml, and sizes in the store with the manifest (by stat)."""
    manifest = read_manifest(store, edition, competition.id)
    paths = manifest["part"] + "/" + manifest["path"]
    md5s = dict(zip(paths, manifest["md5"], strict=True))
    expected = competition.facts.checksums.prepared if edition == "v1" else {}
    different = [path for path, md5 in sorted(expected.items()) if md5s.get(path) != md5]
    root = store.relative(store.prepared(edition, competition.id))
    sizes = _sizes(store, root)
    damaged = [path for path, size in zip(paths, manifest["bytes"], strict=True) if sizes.get(path) != size]
    return Verification(len(expected), different, damaged)


def _sizes(store: Store, root: str) -> Mapping[str, int]:
    """Bytes of each file below `root`: a stat each on this machine, a listing elsewhere."""
    folder = store.local(root)
    if folder is not None:
        # fsspec makes a record of a dozen fields of each file: at half a million of them that is a gigabyte.
        return DirectoryContainer(folder).sizes if folder.is_dir() else {}
    return RemoteDirectory(store.top.fs, store.top.path(root)).sizes
