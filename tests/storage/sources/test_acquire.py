"""Downloads: whole, the right one, recorded last; damaged ones never pass."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import DownloadError
from storage.sources.acquire import acquire, has_archive, recorded, recorded_md5
from storage.sources.bundled import Bundled
from storage.sources.local import Local
from storage.sources.source import Downloadable, Report
from storage.store import Store as AnyStore
from tests.bundles import bundle
from tests.s3.fixtures import Bucket
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
    (source.directory / "digits.zip").write_bytes(bundle("diabetes"))
    assert recorded(store, digits, source) is not None, "what is there counts"
    assert recorded(store, digits, source, renew=True) is None


def test_a_changed_file_in_a_folder_is_another_download(store: Store, digits: Competition, tmp_path: Path) -> None:
    source, folder = Local(tmp_path / "mine"), tmp_path / "mine" / "digits" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("1")
    (tmp_path / "b.csv").write_text("2")
    (folder / "b.csv").symlink_to(tmp_path / "b.csv")
    record = acquire(store, digits, source)
    assert record["md5"] == "", "the MD5 of the archive that is packed here is none of a download"
    assert recorded_md5(store, "digits") is None
    for change in (
        lambda: (folder / "a.csv").write_text("11"),
        lambda: os.utime(folder / "a.csv", (0, 0)),
        lambda: (tmp_path / "b.csv").write_text("22"),
        lambda: (folder / "b.csv").rename(folder / "c.csv"),
        (folder / "c.csv").unlink,
    ):
        assert recorded(store, digits, source, renew=True) == record
        change()
        assert recorded(store, digits, source, renew=True) is None
        record = acquire(store, digits, source, renew=True)


@pytest.mark.parametrize("own", [["competition.yaml", "bundle.py"], ["download.json"], ["download.json", "partial/x"]])
def test_a_folder_of_a_competition_or_of_a_store_is_no_download(
    digits: Competition, tmp_path: Path, own: list[str]
) -> None:
    for name in own:
        path = tmp_path / "digits" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert Local(tmp_path).version(digits) is None
    with pytest.raises(DownloadError, match="put the download of digits there"):
        Local(tmp_path).fetch(digits, tmp_path)


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


class Remote:
    """A source on the network that serves `content` and counts how often."""

    name = "remote"

    def __init__(self, content: bytes) -> None:
        self.content, self.served = content, 0

    def version(self, competition: Downloadable) -> str | None:
        return None

    def at_hand(self, competition: Downloadable) -> bool:
        return False

    def fetch(self, competition: Downloadable, folder: Path, report: Report = lambda _: None) -> Path:
        path = folder / f"{competition.id}.zip"
        path.write_bytes(b"".join(self.pieces(competition)))
        return path

    def pieces(self, competition: Downloadable, report: Report = lambda _: None) -> Iterator[bytes]:
        self.served += 1
        yield self.content


def published(competition: Competition, content: bytes) -> Competition:
    """The competition, whose published archive is `content`."""
    checksums = competition.facts.checksums.model_copy(update={"download": hashlib.md5(content).hexdigest()})
    facts = competition.facts.model_copy(update={"checksums": checksums})
    return competition.model_copy(update={"facts": facts})


def killed_before_the_record(store: AnyStore, competition: Competition, source: Any) -> None:
    """Acquire in a process that is killed as it is about to write the record."""
    if (child := os.fork()) == 0:
        AnyStore.write_json = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        acquire(store, competition, source)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert store.exists(store.raw(competition.id))
    assert recorded(store, competition, source) is None


def test_a_kill_between_archive_and_record_costs_no_second_download(
    store: Store, digits: Competition, digits_zip: Path
) -> None:
    content = digits_zip.read_bytes()
    competition, source = published(digits, content), Remote(content)
    killed_before_the_record(store, competition, source)
    store.local("raw", "digits", "partial").mkdir(exist_ok=True)  # as if it had been killed a moment earlier
    record = acquire(store, competition, source)
    assert source.served == 0, "the killed process had its own copy of the source"
    assert (record["md5"], record["bytes"]) == (hashlib.md5(content).hexdigest(), len(content))
    assert has_archive(store, competition, record)
    assert acquire(store, competition, source) == record
    assert sorted(path.name for path in store.local("raw", "digits").iterdir()) == ["digits.zip", "download.json"]


@pytest.mark.service("s3")
def test_a_kill_between_object_and_record_costs_no_second_download(
    s3: Bucket, digits: Competition, digits_zip: Path
) -> None:
    content = digits_zip.read_bytes()
    competition, source, store = published(digits, content), Remote(content), AnyStore(s3.url)
    store.put(store.raw("digits"), digits_zip)
    record = acquire(store, competition, source)
    assert source.served == 0
    assert has_archive(store, competition, record)


def test_another_archive_without_a_record_is_not_taken_for_the_published_one(
    store: Store, digits: Competition, digits_zip: Path
) -> None:
    """A process may also have been killed while it replaced an older version."""
    content = digits_zip.read_bytes()
    competition, source = published(digits, content), Remote(content)
    store.write(store.raw("digits"), bundle("diabetes"))
    acquire(store, competition, source)
    assert source.served == 1
    assert store.read(store.raw("digits")) == content
