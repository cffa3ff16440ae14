"""Downloads: whole, the right one, recorded last; damaged ones never pass."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import DownloadError
from storage.sources.acquire import acquire, has_archive, recorded
from storage.sources.bundled import Bundled
from storage.sources.local import Local
from tests.stores import Store


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
