"""Garbage collection of raw archives, datasets, remains of interrupted work, and local copies that are not in use."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from common.causes import cause_of
from competitions.editions import EDITIONS, Edition
from competitions.preparing.archives.listing import sizes_on_disk
from competitions.variant import VariantName
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import sharing
from storage.datasets.prepared import committed_key
from storage.datasets.uses import is_used, remove_dataset
from storage.lease import download_lease, lease, prepare_lease, run_lease
from storage.runs.checkpoints import Checkpoints, abandoned
from storage.sources.archive_references import referencing_editions
from storage.store import Store
from storage.upkeep.space import DiskUsage, State, usage_of_datasets, usage_of_machine, usage_of_store

ABANDONED_AGE = timedelta(days=1)  # age at which a multipart upload is considered abandoned


def raw_archives(store: Store, items: Iterable[DiskUsage], dry: bool) -> Iterator[DiskUsage]:
    """Remove archives of prepared competitions, unless another edition is to be prepared from them.

    An edition whose preparation was interrupted still has to be prepared. Download records are kept, so that nothing is
    prepared again.
    """
    items = list(items)
    datasets = [(item.dataset.competition_id, item.state) for item in items if item.dataset is not None]
    done = {name for name, state in datasets if state == "complete"}
    done -= {name for name, state in datasets if state == "incomplete"}
    for item in items:
        if item.kind != "raw" or item.name not in done:
            continue
        with _unused(store, item.name) as free:  # the state of `items` may have changed
            path = store.top.path(store.relative(store.raw(item.name)))
            prepared = any(committed_key(store, Dataset(edition, item.name)) for edition in EDITIONS)
            if free and prepared and not referencing_editions(store, item.name) and store.top.fs.exists(path):
                archive = DiskUsage("raw", item.name, store.raw(item.name), store.top.fs.size(path), 1)
                if not dry:
                    store.remove(archive.where)
                yield archive


def edition_datasets(store: Store, items: Iterable[DiskUsage], edition: Edition, dry: bool) -> Iterator[DiskUsage]:
    """Remove all datasets of an edition, complete or not. Datasets in use are kept, and yielded with that state.

    A dataset that another edition shares is in use by that edition.
    """
    for item in items:
        if item.dataset is not None and item.dataset.edition == edition:
            yield from _dataset(store, item, ("complete", "old", "incomplete"), dry)


def old_datasets(store: Store, items: Iterable[DiskUsage], edition: Edition | None, dry: bool) -> Iterator[DiskUsage]:
    """Like `edition_datasets`, for complete datasets that are no longer current, of an edition or of all.

    Runs made on them can no longer be graded.
    """
    for item in items:
        if item.dataset is not None and item.state == "old" and edition in (None, item.dataset.edition):
            yield from _dataset(store, item, ("old",), dry)


def variants(store: Store, items: Iterable[DiskUsage], edition: Edition | None, dry: bool) -> Iterator[DiskUsage]:
    """Like `edition_datasets`, for the datasets of small variants, of an edition or of all."""
    for item in items:
        if item.dataset is None or VariantName.of(item.dataset.competition_id) is None:
            continue
        if edition in (None, item.dataset.edition):
            yield from _dataset(store, item, ("complete", "old", "incomplete"), dry)


def orphans(store: Store, items: Iterable[DiskUsage], dry: bool) -> Iterator[DiskUsage]:
    """Remove incomplete datasets and downloads that no process is working on, and abandoned uploads and checkpoints."""
    for item in items:
        if item.dataset is not None and item.state == "incomplete":
            yield from _dataset(store, item, ("incomplete",), dry)
        elif item.kind == "raw":
            yield from _partial_download(store, item.name, dry)
    for folder in abandoned(store):
        checkpoints = Checkpoints(folder)
        size, files = checkpoints.usage()
        if not dry:
            checkpoints.remove()
        yield DiskUsage("checkpoints", folder.name, checkpoints.url, size, files)
    yield from _unfinished_uploads(store, dry)


def local_copies(cache: Cache, scratch: Path, dry: bool) -> Iterator[DiskUsage]:
    """Remove local copies of prepared data that are not in use."""
    for item in usage_of_machine(scratch, cache):
        if item.kind == "cache" and item.state != "in use" and (dry or cache.remove(item.where)):
            yield item
    for trash in cache.folder.glob(".trash-*"):
        size = sum(sizes_on_disk(str(trash)))
        if not dry:
            shutil.rmtree(trash, ignore_errors=True)
        yield DiskUsage("cache", "half removed", str(trash), size, 0)


def everything(store: Store) -> list[DiskUsage]:
    """All items in the store, as input for the functions above."""
    return list(usage_of_store(store))


def _dataset(store: Store, item: DiskUsage, states: Container[State], dry: bool) -> Iterator[DiskUsage]:
    """Remove a dataset if it still has one of the states, nobody prepares it, and nobody uses it."""
    dataset = item.dataset
    assert dataset is not None
    with lease(store, prepare_lease(dataset), wait=False) as mine:
        if mine is None:
            return
        # It may have been completed, made current or replaced since it was listed.
        again = usage_of_datasets(store, dataset.edition, dataset.competition_id)
        usage_now = next((other for other in again if other.dataset == dataset), None)
        if usage_now is None or usage_now.state not in states:
            return
        if usage_now.state == "complete" and (other_editions := sharing(store, dataset)):
            yield replace(usage_now, name=f"{usage_now.name}, shared with {', '.join(other_editions)}", state="in use")
            return
        if is_used(store, dataset) or not (dry or remove_dataset(store, dataset)):
            yield replace(usage_now, state="in use")
            return
        yield usage_now


def _partial_download(store: Store, competition_id: str, dry: bool) -> Iterator[DiskUsage]:
    """Remove partial archives, and archives without a record."""
    folder = store.top.path(f"raw/{competition_id}")
    record = f"{folder}/download.json"
    with _unused(store, competition_id) as free:
        if not free:
            return
        is_recorded = store.top.fs.exists(record)
        for path, info in store.top.fs.find(folder, detail=True).items():
            is_complete = is_recorded and path == f"{folder}/{competition_id}.zip"
            if is_complete or path == record:
                continue
            if not dry:
                store.top.fs.rm_file(path)
            yield DiskUsage("raw", f"part of {competition_id}", path, info["size"], 1, "incomplete")


def _unfinished_uploads(store: Store, dry: bool) -> Iterator[DiskUsage]:
    """Abort uploads below the root whose process has not finished them, and holds no lease on their object any more."""
    if "s3" not in store.top.fs.protocol:
        return
    fs: Any = store.top.fs
    bucket, prefix, _ = fs.split_path(store.top.root)
    key_prefix = f"{prefix}/" if prefix else ""
    for upload in list(_uploads(fs, bucket, key_prefix)):
        if datetime.now(UTC) - upload["Initiated"] < ABANDONED_AGE:
            continue
        with contextlib.ExitStack() as held_leases:
            leases = _leases_of(upload["Key"].removeprefix(key_prefix))
            if not all(held_leases.enter_context(lease(store, name, wait=False)) for name in leases):
                continue
            if not dry:
                with contextlib.suppress(FileNotFoundError):  # it has just ended
                    fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
            yield DiskUsage("raw", "upload never finished", f"{bucket}/{upload['Key']}", 0, 1, "incomplete")


def _uploads(fs: Any, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    """All unfinished uploads of objects whose key begins with `prefix`."""
    where: dict[str, str] = {}
    while True:
        try:
            page = fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix, **where)
        except Exception as error:
            if cause_of(error).kind == "user input":  # the server has no such listing
                return
            raise
        yield from page.get("Uploads", ())
        if not page.get("IsTruncated"):
            return
        where = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}


def _leases_of(path: str) -> list[str]:
    """The leases, one of which a process holds while it writes this object. Tables and reports need none."""
    match path.split("/"):
        case ["raw", competition_id, *_]:
            return [download_lease(competition_id)]
        case ["prepared", edition, competition_id, *_]:
            return [prepare_lease(Dataset(cast(Edition, edition), competition_id))]
        case ["runs", run_group, competition_id, seed, *_] if seed.isdecimal():
            return [run_lease(run_group, competition_id, int(seed))]
    return []


@contextlib.contextmanager
def _unused(store: Store, competition_id: str) -> Iterator[bool]:
    """Yield whether no process downloads or prepares a competition. Then no process can start this in the block."""
    names = [download_lease(competition_id), *(prepare_lease(Dataset(edition, competition_id)) for edition in EDITIONS)]
    with contextlib.ExitStack() as held_leases:
        yield all(held_leases.enter_context(lease(store, name, wait=False)) for name in names)
