"""Prepared datasets of a store: their committed and verified content, and local copies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.units import listed
from competitions import registry
from competitions.editions import Edition
from competitions.preparing.declaration import LeftOut
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.commit import DESCRIPTION, MARKER
from storage.datasets.current import Current, competitions_of, find, read_current, read_marker, require
from storage.datasets.fetch import fetch_all
from storage.datasets.job import Preparable
from storage.datasets.recipe import code_of, recipe_of
from storage.datasets.uses import use
from storage.datasets.verify import ChecksumMismatch, published_checksums, read_manifest, verify
from storage.keys import content_key, content_key_of_rows
from storage.lease import lease, prepare_lease
from storage.sources import RemoteSource, Source
from storage.sources.acquire import has_archive, recorded
from storage.store import Store
from storage.uses import Continuing

_AT_ONCE = 16  # small requests at the same time
VERIFIED = "verified.json"


def committed_key(store: Store, dataset: Dataset) -> str | None:
    """The key of the dataset, or of the current one if it has no key; None if there is no such complete dataset."""
    found = find(store, dataset)
    return found.key if found else None


def left_out(store: Store, dataset: Dataset) -> list[LeftOut]:
    """What preparing left out of the training data of a dataset; without a key that of the current one."""
    found = find(store, dataset)
    marker = read_marker(store, found) if found else None
    return [LeftOut(**each) for each in (marker or {}).get("left_out", ())]


def left_out_of(store: Store, competition_id: str, editions: Iterable[Edition]) -> str:
    """What preparing left out of the training data in these editions, for a message; empty if there is nothing.

    For example "v2 leaves 12 of 8,920 images out of train (duplicate-photographs)". v1 is as published and leaves
    nothing out, so that its markers are not read.
    """
    return "; ".join(
        f"{edition} leaves {each.count:,} of {each.of:,} {each.what} out of train ({each.issue})"
        for edition in editions
        if edition != "v1"
        for each in left_out(store, Dataset(edition, competition_id))
    )


def is_verified(store: Store, dataset: Dataset, competition: Preparable) -> bool:
    """Whether the dataset with this key has passed `check_dataset` with the present checksums of the competition."""
    found = find(store, dataset)
    record = store.read_json(f"{store.prepared(found)}/{VERIFIED}") if found else None
    return found is not None and record is not None and record == verified_record(found, competition)


def verified_record(dataset: Dataset, competition: Preparable) -> dict[str, Any]:
    """The content of `verified.json` of a dataset that has passed; checksums that are added later are not in it."""
    return {"key": dataset.key, "checksums": content_key(published_checksums(dataset, competition))}


def is_prepared(
    store: Store,
    dataset: Dataset,
    source: Source,
    params: Mapping[str, Any] | None = None,
    *,
    verified: bool = True,
    renew: bool = False,
) -> bool:
    """Whether preparing would change nothing: the store has the dataset made of the current download of `source`.

    A dataset that was adopted counts until it is renewed. One made by other code counts if its download is not at hand
    to make it again: it is used as it is until the operator decides.

    Args:
        store: store of the dataset.
        dataset: edition and competition.
        source: source of the download.
        params: overrides of the competition's parameters.
        verified: whether the dataset must have passed `check_dataset`.
        renew: whether a dataset made by other code never counts.
    """
    competition = registry.get(dataset.competition_id)
    current = read_current(store, dataset)
    if current.dataset is not None and current.adopted and not renew:
        return not verified or is_verified(store, current.dataset, competition)
    record = recorded(store, competition, source)
    if record is None:
        return False
    recipe = recipe_of(competition, record["hash"], dataset.edition, params)
    state = current.state(recipe)
    if current.dataset is None or state == "other inputs":
        return False
    if state == "other code":
        at_hand = not isinstance(source, RemoteSource) or has_archive(store, competition, record)
        if renew or at_hand or find(store, replace(dataset, key=current.key_of(recipe))):
            return False
    return not verified or is_verified(store, current.dataset, competition)


def needs_download(
    store: Store, dataset: Dataset, source: Source, params: Mapping[str, Any] | None = None, *, renew: bool = False
) -> bool:
    """Whether preparing needs the archive of the download; as `is_prepared`, but any complete dataset will do."""
    competition = registry.get(dataset.competition_id)
    if is_prepared(store, dataset, source, params, verified=False, renew=renew):
        return False
    record = recorded(store, competition, source)
    if record is None:
        return True
    current, files_of = read_current(store, dataset), competition.files_of(dataset.edition)
    if current.dataset is None and files_of != dataset.edition:
        return needs_download(store, Dataset(files_of, competition.id), source, params, renew=renew)
    key = current.key_of(recipe_of(competition, record["hash"], dataset.edition, params))
    return find(store, replace(dataset, key=key)) is None


def made_by_other_code(store: Store, competition_ids: Iterable[str] | None = None) -> list[Dataset]:
    """The current datasets that other code than the current one made, of all known competitions or of some."""
    known = set(registry.folders()) if competition_ids is None else set(competition_ids)
    wanted = [Dataset(edition, name) for edition, name in competitions_of(store) if name in known]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # a request each
        found = list(pool.map(lambda each: read_current(store, each), wanted))
    return [each.dataset for each in found if each.dataset and not each.adopted and not _made_by_current_code(each)]


def _made_by_current_code(current: Current) -> bool:
    assert current.dataset is not None
    try:
        return current.made_by(code_of(registry.get(current.dataset.competition_id)))
    except UserError:  # a competition folder with a mistake; whoever uses it is told
        return True


def check_dataset(store: Store, dataset: Dataset, competition: Preparable) -> int:
    """Verify a dataset and record that it passed. Returns the number of files compared with published MD5s.

    Raises `ChecksumMismatch` naming files that are damaged or differ from the published benchmark. The commit marker of
    a damaged dataset is removed, so that no reader finds it and the next preparation writes its files again; they have
    the same bytes, so agents that still read the others are not disturbed.
    """
    found = require(store, dataset)
    result = verify(store, found, competition)
    if result.damaged:
        with lease(store, prepare_lease(found)):
            result = verify(store, found, competition)  # another process may have mended it meanwhile
            if result.damaged:
                store.remove(f"{store.prepared(found)}/{VERIFIED}")
                store.remove(f"{store.prepared(found)}/{MARKER}")
    if result.damaged:
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {listed(result.damaged)} missing or of the wrong size; run prepare again"
        )
    if result.different:
        raise ChecksumMismatch(
            f"{dataset.competition_id}: {listed(result.different)} differ from the published benchmark; check that the "
            "download is the right one, or pass --skip-verification to use the files"
        )
    if not is_verified(store, found, competition):
        store.write_json(f"{store.prepared(found)}/{VERIFIED}", verified_record(found, competition))
    return result.compared


@contextlib.contextmanager
def local_copy(
    store: Store,
    dataset: Dataset,
    part: str,
    cache: Cache,
    continuing: Continuing | None = None,
    on_wait: Callable[[str], None] = lambda _: None,
    *,
    within_limit: bool = False,
) -> Iterator[Path]:
    """Provide one part of a dataset locally for the block. Yields the directory that contains the part.

    A local store is used in place. Files of an object store are downloaded to the cache, and their hashes are verified.

    Args:
        store: store of the dataset.
        dataset: the dataset; without a key the current one.
        part: "public" or "private".
        cache: cache for the copy; not used with a local store.
        continuing: a run that uses the dataset or the copy even if this process is killed.
        on_wait: told what is waited for: room, or another process that makes the same copy.
        within_limit: wait until the copy fits within the cache's limit, see `Cache.use`.

    Raises:
        UserError: the dataset is not prepared, or the store's copy is damaged.
    """
    with use(store, dataset, continuing) as found:
        here = store.local(store.relative(store.prepared(found)))
        if here is not None:
            yield here
            return
        manifest = read_manifest(store, found)

        def files() -> Iterator[tuple[str, int, str]]:
            rows = manifest.rows("part", "path", "bytes", "hash")
            return ((path, size, digest) for of_part, path, size, digest in rows if of_part == part)

        def fill(folder: Path) -> None:
            fetch_all(store, f"{store.prepared(found)}/{part}", files(), folder / part)

        size, digest = sum(size for _, size, _ in files()), content_key_of_rows(part, files())
        with cache.use(
            digest,
            label_of(dataset, part),
            size,
            fill,
            continuing=continuing,
            within_limit=within_limit,
            on_wait=on_wait,
        ) as root:
            if part == "public":
                _lay_texts_beside(store, found, root / part)
            yield root


def label_of(dataset: Dataset, part: str) -> str:
    """The name of a part of a dataset in listings of the cache."""
    return f"{dataset.competition_id} {dataset.edition} {part}"


def _lay_texts_beside(store: Store, dataset: Dataset, folder: Path) -> None:
    """Lay the descriptions beside the files of a copy. They are not part of the dataset and may be added later."""
    from storage.sources.kaggle.pages import OFFICIAL

    if not (folder / DESCRIPTION).exists():  # a container needs a file to mount the text of its run over
        (folder / DESCRIPTION).write_text(registry.get(dataset.competition_id).describe(dataset.edition), "utf-8")
        (folder / DESCRIPTION).chmod(0o444)  # as the files of the dataset
    path = store.top.path(store.relative(f"{store.prepared(dataset)}/public/{OFFICIAL}"))
    if store.top.fs.exists(path):
        store.top.fs.get_file(path, str(folder / OFFICIAL))
    else:
        (folder / OFFICIAL).unlink(missing_ok=True)
