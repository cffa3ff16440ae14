"""Downloads: whole, the right one, recorded last; damaged ones never pass."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import DownloadError
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.prepared import check, committed_key, is_prepared, local_copy
from storage.datasets.verify import ChecksumMismatch
from storage.sources.acquire import acquire, discard_archive, has_archive, recorded
from storage.sources.bundled import Bundled
from storage.sources.local import Local
from tests.stores import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def digits() -> Competition:
    return registry.get("digits")


def test_a_bundled_download_is_made_once(store: Store, digits: Competition) -> None:
    first = acquire(store, digits, Bundled())
    assert acquire(store, digits, Bundled()) == first == recorded(store, digits, Bundled())
    assert has_archive(store, digits, first)


def test_a_directory_of_downloads_is_used(store: Store, digits: Competition, digits_zip: Path) -> None:
    record = acquire(store, digits, Local(digits_zip.parent))
    assert record["bytes"] == digits_zip.stat().st_size
    assert (store.local("raw", "digits") / "digits.zip").read_bytes() == digits_zip.read_bytes()


def test_a_changed_file_is_another_download(
    store: Store, digits: Competition, digits_zip: Path, tmp_path: Path
) -> None:
    source = Local(tmp_path / "mine")
    source.directory.mkdir()
    shutil.copy(digits_zip, source.directory / "digits.zip")
    acquire(store, digits, source)
    (source.directory / "digits.zip").unlink()
    (source.directory / "digits.zip").write_bytes(registry.get("diabetes").bundle())
    assert recorded(store, digits, source) is None


def test_a_missing_file_says_where_to_put_it(store: Store, digits: Competition, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"digits\.zip does not exist; put the download of digits there"):
        acquire(store, digits, Local(tmp_path))
    with pytest.raises(DownloadError, match="is not a directory"):
        acquire(store, digits, Local(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-100], lambda data: data[:500], lambda data: b"", lambda data: b"x" * 999]
)
def test_a_damaged_archive_never_passes(
    store: Store, digits: Competition, digits_zip: Path, damage: Callable[[bytes], bytes]
) -> None:
    digits_zip.write_bytes(damage(digits_zip.read_bytes()))
    with pytest.raises(DownloadError, match="download it again"):
        acquire(store, digits, Local(digits_zip.parent))
    assert recorded(store, digits, Local(digits_zip.parent)) is None


def test_another_archive_than_the_published_one_is_refused(store: Store, digits_zip: Path) -> None:
    leaf = registry.get("leaf-classification")
    digits_zip.rename(digits_zip.with_name("leaf-classification.zip"))
    source = Local(digits_zip.parent)
    with pytest.raises(DownloadError, match="the published one is 043bdec7"):
        acquire(store, leaf, source)
    assert not store.exists(store.raw("leaf-classification"))
    assert acquire(store, leaf, source, verify=False)


def test_a_dataset_outlives_its_archive(store: Store, digits: Competition) -> None:
    record = acquire(store, digits, Bundled())
    from storage.datasets.prepared import prepared_key

    key = prepared_key(digits, record["hash"], "v1")
    materialise(Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits")), key=key))
    check(store, Dataset("v1", "digits", key), digits)
    discard_archive(store, "digits")
    assert committed_key(store, Dataset("v1", "digits")) == key
    assert is_prepared(store, Dataset("v1", "digits"), Bundled())


def test_a_file_that_differs_is_named(store: Store, digits: Competition) -> None:
    acquire(store, digits, Bundled())
    wrong = digits.facts.checksums.model_copy(update={"prepared": {"public/train.csv": "0" * 32}})
    changed = digits.model_copy(update={"facts": digits.facts.model_copy(update={"checksums": wrong})})
    materialise(Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits")), key="k"))
    with pytest.raises(ChecksumMismatch, match=r"public/train\.csv differ"):
        check(store, Dataset("v1", "digits", "k"), changed)
    assert check(store, Dataset("v1", "digits", "k"), digits) == 3


def test_a_damaged_dataset_is_no_longer_there(store: Store, digits: Competition) -> None:
    acquire(store, digits, Bundled())
    materialise(Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits")), key="k"))
    (store.local("prepared", "v1", "digits") / "public" / "train.zip").write_bytes(b"cut")
    with pytest.raises(ChecksumMismatch, match=r"public/train\.zip missing or of the wrong size"):
        check(store, Dataset("v1", "digits", "k"), digits)
    assert committed_key(store, Dataset("v1", "digits")) is None


def test_an_object_store_is_copied_to_local_disk_once(digits: Competition, tmp_path: Path) -> None:
    store = Store(f"memory://{tmp_path.name}")
    acquire(store, digits, Bundled())
    materialise(Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits")), key="k"))
    cache = Cache(tmp_path / "cache", limit=10**9)
    with local_copy(store, Dataset("v1", "digits"), "public", cache) as root:
        assert (root / "public" / "train.csv").is_file()
        assert not (root / "private").exists(), "answers do not come along"
    store.remove(store.prepared(Dataset("v1", "digits")) + "/public")
    with local_copy(store, Dataset("v1", "digits"), "public", cache) as again:
        assert again == root
