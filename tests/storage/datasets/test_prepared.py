"""Prepared datasets of a store: verified, found again, damaged, and as a local copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions.competition import Competition
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import make_current
from storage.datasets.job import recipe_of
from storage.datasets.local_copy import local_copy
from storage.datasets.prepared import committed_key, data_of
from storage.datasets.verify import ChecksumMismatch, check_dataset
from storage.sources.acquire import acquire, discard_archive
from storage.sources.bundled import Bundled
from storage.store import Store
from tests.stores import put_dataset


def test_a_dataset_outlives_its_archive(store: Store, digits: Competition) -> None:
    record = acquire(store, digits, Bundled())
    key = recipe_of(digits, record["hash"], "v1").key
    put_dataset(store, "digits", key=key)
    make_current(store, Dataset("v1", "digits", key), recipe_of(digits, record["hash"], "v1"))
    check_dataset(store, Dataset("v1", "digits", key), digits)
    discard_archive(store, "digits")
    assert committed_key(store, Dataset("v1", "digits")) == key
    assert data_of(store, Dataset("v1", "digits"), Bundled()).state == "prepared"


def test_a_file_that_differs_is_named(store: Store, digits: Competition) -> None:
    acquire(store, digits, Bundled())
    wrong = digits.facts.checksums.model_copy(update={"prepared": {"public/train.csv": "0" * 32}})
    changed = digits.model_copy(update={"facts": digits.facts.model_copy(update={"checksums": wrong})})
    put_dataset(store, "digits")
    with pytest.raises(ChecksumMismatch, match=r"public/train\.csv differ"):
        check_dataset(store, Dataset("v1", "digits", "k"), changed)
    assert check_dataset(store, Dataset("v1", "digits", "k"), digits) == 3


def test_a_damaged_dataset_is_no_longer_there(store: Store, digits: Competition) -> None:
    acquire(store, digits, Bundled())
    put_dataset(store, "digits")
    store.write(store.url("prepared", "v1", "digits", "k", "public", "train.zip"), b"cut")
    with pytest.raises(ChecksumMismatch, match=r"public/train\.zip missing or of the wrong size"):
        check_dataset(store, Dataset("v1", "digits", "k"), digits)
    assert committed_key(store, Dataset("v1", "digits")) is None


def test_an_object_store_is_copied_to_local_disk_once(digits: Competition, tmp_path: Path) -> None:
    store = Store(f"memory://{tmp_path.name}")
    acquire(store, digits, Bundled())
    put_dataset(store, "digits")
    cache = Cache(tmp_path / "cache", limit=10**9)
    with local_copy(store, Dataset("v1", "digits"), "public", cache) as root:
        assert (root / "public" / "train.csv").is_file()
        assert not (root / "private").exists(), "answers do not come along"
    store.remove(store.prepared(Dataset("v1", "digits", "k")) + "/public")
    with local_copy(store, Dataset("v1", "digits"), "public", cache) as again:
        assert again == root
