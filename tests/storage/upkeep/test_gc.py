"""Garbage collection never removes what another process works on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from common.processes import identity
from storage.dataset import Dataset
from storage.datasets.current import make_current
from storage.lease import download_lease, lease, prepare_lease, run_lease
from storage.sources import archive_references
from storage.sources.archive_references import reference_archive, referencing_editions, release_archive
from storage.store import Store
from storage.upkeep import gc
from storage.upkeep.space import usage_of_store
from tests.s3.fixtures import Bucket


def test_an_incomplete_dataset_goes_unless_it_is_being_prepared(tmp_path: Path) -> None:
    store, dataset = Store(str(tmp_path)), Dataset("v1", "digits", "k")
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
    store, dataset = Store(str(tmp_path)), Dataset("v1", "digits", "k")
    store.write(store.raw("digits"), b"archive")
    assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    store.write_json(f"{store.prepared(dataset)}/commit.json", {"key": "k", "files": 0, "bytes": 0})
    make_current(store, dataset)
    with lease(store, download_lease("digits")):
        assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    assert [each.bytes for each in gc.raw_archives(store, usage_of_store(store), dry=False)] == [7]
    assert not store.exists(store.raw("digits"))


def test_an_archive_stays_while_another_edition_wants_it(tmp_path: Path) -> None:
    store, v1, v2 = Store(str(tmp_path)), Dataset("v1", "digits", "k"), Dataset("v2", "digits", "k")
    store.write(store.raw("digits"), b"archive")
    store.write_json(f"{store.prepared(v1)}/commit.json", {"key": "k", "files": 0, "bytes": 0})
    make_current(store, v1)
    reference_archive(store, v2)
    assert referencing_editions(store, "digits") == ["v2"]
    assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    release_archive(store, v2)
    store.write(f"{store.prepared(v2)}/.progress/plan", b"interrupted")
    assert list(gc.raw_archives(store, usage_of_store(store), dry=False)) == []
    store.remove(store.prepared(v2))
    assert [each.name for each in gc.raw_archives(store, usage_of_store(store), dry=False)] == ["digits"]


def test_an_archive_that_a_dead_process_wanted_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(archive_references, "identity", lambda: {**identity(), "started": 1.0})
        reference_archive(store, Dataset("v1", "digits"))
        assert referencing_editions(store, "digits") == []
        patch.setattr(archive_references, "identity", lambda: {**identity(), "machine": "another"})
        reference_archive(store, Dataset("v2", "digits"))
        assert referencing_editions(store, "digits") == ["v2"]
        patch.setattr(archive_references, "MAX_REMOTE_AGE", timedelta(0))
        assert referencing_editions(store, "digits") == []


def test_what_changed_since_the_listing_is_seen(tmp_path: Path) -> None:
    store, dataset = Store(str(tmp_path)), Dataset("v1", "digits", "k")
    store.write(store.raw("digits"), b"archive")
    store.write(store.url("raw", "digits", "partial", "digits.zip"), b"half")
    store.write_json(f"{store.prepared(dataset)}/commit.json", {"key": "k", "files": 0, "bytes": 0})
    make_current(store, dataset)
    found = gc.everything(store)
    store.remove(store.prepared(dataset))  # by another process, which will prepare it anew
    assert list(gc.raw_archives(store, found, dry=False)) == []
    store.remove(store.url("raw", "digits", "partial"))
    store.write_json(store.url("raw", "digits", "download.json"), {"hash": "h"})  # the download was completed
    assert list(gc.orphans(store, found, dry=False)) == []
    assert store.exists(store.raw("digits"))


def test_only_uploads_below_the_root_that_belong_to_nobody_are_aborted(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(s3.url)
    keys = ["raw/a/a.zip", "raw/b/b.zip", "prepared/v1/a/public/x", "runs/g/a/0/code/x", "tables/runs/x"]
    for key in [f"some/prefix/{key}" for key in keys] + ["some/prefix2/raw/a/a.zip"]:
        s3.client.create_multipart_upload(Bucket=s3.name, Key=key)
    monkeypatch.setattr(gc, "ABANDONED_AGE", timedelta(0))
    list_uploads = store.top.fs.call_s3
    monkeypatch.setattr(  # pages of two
        store.top.fs,
        "call_s3",
        lambda name, **more: (
            list_uploads(name, **({"MaxUploads": 2} | more))
            if name == "list_multipart_uploads"
            else list_uploads(name, **more)
        ),
    )
    with lease(store, download_lease("b")), lease(store, run_lease("g", "a", 0)):
        gone = [each.where for each in gc.orphans(store, [], dry=False)]
    assert sorted(gone) == [f"{s3.name}/some/prefix/{key}" for key in sorted([keys[0], keys[2], keys[4]])]
    left = s3.client.list_multipart_uploads(Bucket=s3.name)["Uploads"]
    assert sorted(each["Key"] for each in left) == [
        "some/prefix/raw/b/b.zip",
        "some/prefix/runs/g/a/0/code/x",
        "some/prefix2/raw/a/a.zip",
    ]
