"""Prepared datasets as the store knows them: committed under a key, verified, and as a local directory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.settings import get_settings, params_of
from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from storage.cache import Cache
from storage.datasets.fetch import fetch_all
from storage.datasets.materialise import MARKER
from storage.datasets.verify import ChecksumMismatch, read_manifest, verify
from storage.keys import content_key, prepared_key
from storage.sources import source_for
from storage.sources.acquire import recorded
from storage.store import Store

_VERIFIED = "verified.json"


def committed_key(store: Store, edition: Edition, competition_id: str) -> str | None:
    """The content key of a complete dataset, None if there is none."""
    marker: dict[str, Any] | None = store.read_json(store.prepared(edition, competition_id) + f"/{MARKER}")
    return None if marker is None else marker["key"]


def is_verified(store: Store, edition: Edition, competition_id: str, key: str) -> bool:
    """Whether the dataset committed under `key` has passed `check`."""
    record = store.read_json(store.prepared(edition, competition_id) + f"/{_VERIFIED}")
    return record is not None and record["key"] == key


def is_prepared(store: Store, competition_id: str, edition: Edition, raw_dir: str | None, verified: bool) -> bool:
    """Whether the store has this dataset, made of what the source serves by the code as it is now."""
    competition = registry.get(competition_id)
    record = recorded(store, competition, source_for(competition, Path(raw_dir) if raw_dir else None))
    if record is None:
        return False
    key = prepared_key(competition, record["hash"], edition, params_of(competition_id))
    if committed_key(store, edition, competition_id) != key:
        return False
    return not verified or is_verified(store, edition, competition_id, key)


def check(store: Store, competition: Competition, edition: Edition, key: str) -> int:
    """Verify the dataset committed under `key` and note that it passed; returns how many MD5s were compared.

    Raises `ChecksumMismatch` naming the files that are not those of the published benchmark, or that are damaged.
    """
    result = verify(store, competition, edition)
    if result.damaged:
        store.remove(store.prepared(edition, competition.id) + f"/{MARKER}")
        raise ChecksumMismatch(
            f"{competition.id}: {_some(result.damaged)} missing or of the wrong size; run prepare again"
        )
    if result.different:
        raise ChecksumMismatch(
            f"{competition.id}: {_some(result.different)} differ from the published benchmark; "
            "is the download the right one? --skip-verification goes on all the same"
        )
    store.write_json(store.prepared(edition, competition.id) + f"/{_VERIFIED}", {"key": key})
    return result.compared


@contextlib.contextmanager
def held_part(
    store: Store, competition_id: str, edition: Edition, part: str, scratch: Path, at_least: float = 0
) -> Iterator[Path]:
    """The directory on this machine that holds `part` ("public" or "private") of a dataset, for the block.

    A store on this machine is used in place; from an object store the files are fetched into the cache below `scratch`,
    each compared with its hash, and stay at least for the block; `at_least` seconds if this process is killed. Yields
    the directory above `part`. Raises `UserError` if the dataset is not prepared, or the store's copy damaged.
    """
    key = committed_key(store, edition, competition_id)
    if key is None:
        raise UserError(
            f"{competition_id} ({edition}) is not prepared in {store.root}; run: mlebench prepare -c {competition_id}"
        )
    here = store.local("prepared", edition, competition_id)
    if here is not None:
        yield here
        return
    manifest = read_manifest(store, edition, competition_id)
    rows = manifest.loc[manifest["part"] == part, ["path", "bytes", "hash"]]
    files = list(rows.itertuples(index=False, name=None))
    url = f"{store.prepared(edition, competition_id)}/{part}"

    def fill(folder: Path) -> None:
        fetch_all(store, url, files, folder / part)

    cache = Cache(scratch / "cache", get_settings().cache_limit)
    digest = content_key(part, files)
    size = int(rows["bytes"].sum())
    with cache.use(digest, f"{competition_id} {edition} {part}", size, fill, at_least) as root:
        if part == "public":
            _copy_official(store, edition, competition_id, root / part)
        yield root


_held = contextlib.ExitStack()  # never closed: what `local_part` hands out stays until the process ends


def local_part(store: Store, competition_id: str, edition: Edition, part: str, scratch: Path) -> Path:
    """As `held_part`, for as long as this process lives."""
    return _held.enter_context(held_part(store, competition_id, edition, part, scratch))


def _copy_official(store: Store, edition: Edition, competition_id: str, folder: Path) -> None:
    """Kaggle's own description, where it was asked for: it is no part of the dataset and may come later, or go."""
    from storage.sources.kaggle.pages import OFFICIAL

    path = store.top.path(store.relative(store.prepared(edition, competition_id)) + f"/public/{OFFICIAL}")
    if store.top.fs.exists(path):
        store.top.fs.get_file(path, str(folder / OFFICIAL))
    else:
        (folder / OFFICIAL).unlink(missing_ok=True)


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
