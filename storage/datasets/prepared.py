"""Prepared datasets of a store: their committed and verified content, and local copies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.fetch import fetch_all
from storage.datasets.job import Preparable
from storage.datasets.materialise import MARKER
from storage.datasets.verify import ChecksumMismatch, read_manifest, verify
from storage.keys import content_key
from storage.sources import Source
from storage.sources.acquire import recorded
from storage.store import Store
from storage.uses import Continuing

_VERIFIED = "verified.json"


def prepared_key(
    competition: Competition, download_hash: str, edition: Edition, params: Mapping[str, Any] | None = None
) -> str:
    """Content key of a prepared dataset, from its download, the competition's code, the edition and the parameters."""
    return content_key(download_hash, competition.fingerprint("prepare"), edition, competition.params(params))


def committed_key(store: Store, dataset: Dataset) -> str | None:
    """The committed content key, regardless of `dataset.key`; None if there is no complete dataset."""
    marker: dict[str, Any] | None = store.read_json(f"{store.prepared(dataset)}/{MARKER}")
    return None if marker is None else marker["key"]


def is_verified(store: Store, dataset: Dataset) -> bool:
    """Whether the dataset with this key has passed `check`."""
    record = store.read_json(f"{store.prepared(dataset)}/{_VERIFIED}")
    return record is not None and record["key"] == dataset.key


def is_prepared(
    store: Store, dataset: Dataset, source: Source, params: Mapping[str, Any] | None = None, verified: bool = True
) -> bool:
    """Whether the store has the dataset that the current code would create from the current download of `source`.

    Args:
        store: store of the dataset.
        dataset: edition and competition; the key is computed.
        source: source of the download.
        params: overrides of the competition's parameters.
        verified: whether the dataset must have passed `check`.
    """
    competition = registry.get(dataset.competition_id)
    record = recorded(store, competition, source)
    if record is None:
        return False
    key = prepared_key(competition, record["hash"], dataset.edition, params)
    if committed_key(store, dataset) != key:
        return False
    return not verified or is_verified(store, Dataset(dataset.edition, dataset.competition_id, key))


def check_dataset(store: Store, dataset: Dataset, competition: Preparable) -> int:
    """Verify a dataset and record that it passed. Returns the number of files compared with published MD5s.

    Raises `ChecksumMismatch` naming files that are damaged or differ from the published benchmark. The commit marker of
    a damaged dataset is removed, so that it is prepared again.
    """
    result = verify(store, dataset, competition)
    if result.damaged:
        store.remove(f"{store.prepared(dataset)}/{MARKER}")
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {_some(result.damaged)} missing or of the wrong size; run prepare again"
        )
    if result.different:
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {_some(result.different)} differ from the published benchmark; check that the "
            "download is the right one, or pass --skip-verification to use the files"
        )
    store.write_json(f"{store.prepared(dataset)}/{_VERIFIED}", {"key": dataset.key or committed_key(store, dataset)})
    return result.compared


@contextlib.contextmanager
def local_copy(
    store: Store,
    dataset: Dataset,
    part: str,
    cache: Cache,
    continuing: Continuing | None = None,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[Path]:
    """Provide one part of a dataset locally for the block. Yields the directory that contains the part.

    A local store is used in place. Files of an object store are downloaded to the cache, and their hashes are verified.

    Args:
        store: store of the dataset.
        dataset: the dataset.
        part: "public" or "private".
        cache: cache for the copy; not used with a local store.
        continuing: a run that uses the copy even if this process is killed.
        on_wait: told what is waited for: room, or another process that makes the same copy.

    Raises:
        UserError: the dataset is not prepared, or the store's copy is damaged.
    """
    key = committed_key(store, dataset)
    if key is None or dataset.key not in (None, key):
        raise UserError(f"{dataset} is not prepared in {store.root}; run: mlebench prepare -c {dataset.competition_id}")
    here = store.local("prepared", dataset.edition, dataset.competition_id)
    if here is not None:
        yield here
        return
    manifest = read_manifest(store, dataset)
    rows = manifest.loc[manifest["part"] == part, ["path", "bytes", "hash"]]
    files = list(rows.itertuples(index=False, name=None))
    url = f"{store.prepared(dataset)}/{part}"

    def fill(folder: Path) -> None:
        fetch_all(store, url, files, folder / part)

    label = f"{dataset.competition_id} {dataset.edition} {part}"
    size, digest = int(rows["bytes"].sum()), content_key(part, files)
    with cache.use(digest, label, size, fill, continuing=continuing, on_wait=on_wait) as root:
        if part == "public":
            _copy_official_description(store, dataset, root / part)
        yield root


def _copy_official_description(store: Store, dataset: Dataset, folder: Path) -> None:
    """Copy Kaggle's own description if the store has it. It is not part of the dataset and may be added later."""
    from storage.sources.kaggle.pages import OFFICIAL

    path = store.top.path(store.relative(f"{store.prepared(dataset)}/public/{OFFICIAL}"))
    if store.top.fs.exists(path):
        store.top.fs.get_file(path, str(folder / OFFICIAL))
    else:
        (folder / OFFICIAL).unlink(missing_ok=True)


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
