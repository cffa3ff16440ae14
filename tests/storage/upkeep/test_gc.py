"""Garbage collection never removes what another process works on."""

from __future__ import annotations

from pathlib import Path

from storage.dataset import Dataset
from storage.lease import download_lease, lease, prepare_lease
from storage.store import Store
from storage.upkeep import gc
from storage.upkeep.space import usage_of_store


def test_an_incomplete_dataset_goes_unless_it_is_being_prepared(tmp_path: Path) -> None:
    store, dataset = Store(str(tmp_path)), Dataset("v1", "digits")
    store.write(f"{store.prepared(dataset)}/public/train.csv", b"half")
    found = gc.everything(store)
    assert [(each.kind, each.name, each.bytes, each.state) for each in found] == [
        ("prepared", "v1 digits", 4, "incomplete")
    ]
    with lease(store, prepare_lease(dataset)):
        assert list(gc.orphans(store, found, dry=False)) == []
    assert [each.name for each in gc.orphans(store, found, dry=True)] == ["v1 digits"]
    assert store.exists(store.prepared(dataset)), "a dry run removes nothing"
    assert [each.name for each in gc.orphans(store, found, dry=False)] == ["v1 digits"]
    assert not store.exists(store.prepared(dataset))


def test_an_archive_goes_when_its_dataset_is_complete_and_nobody_downloads_it(tmp_path: Path) -> None:
    store, dataset = Store(str(tmp_path)), Dataset("v1", "digits")
    store.write(store.raw("digits"), b"archive")
    assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    store.write_json(f"{store.prepared(dataset)}/commit.json", {"key": "k", "files": 0, "bytes": 0})
    with lease(store, download_lease("digits")):
        assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    assert [each.bytes for each in gc.raw_archives(store, usage_of_store(store), dry=False)] == [7]
    assert not store.exists(store.raw("digits"))
