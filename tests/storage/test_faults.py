"""A store that fails is never taken for a damaged archive, nothing is removed for it, and what passes is waited for."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.causes import cause_of
from competitions.competition import Competition
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import Container, open_container
from storage import remote
from storage.dataset import Dataset
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.sources import Downloadable, Report
from storage.sources.acquire import acquire, recorded
from storage.store import Store
from storage.writers import StoreError
from tests.bundles import bundle
from tests.s3.faults import ALWAYS
from tests.s3.fixtures import FaultyBucket

pytestmark = pytest.mark.slow

CONTENT = b"content " * 40_000


@pytest.fixture
def store(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store behind the proxy, with clients that soon give up by themselves."""
    from s3fs import S3FileSystem

    monkeypatch.setattr(remote, "RETRYING_CLIENT", remote.QUICK_CLIENT)
    monkeypatch.setattr(S3FileSystem, "retries", 2)
    return Store(faulty_s3.url)


class Network:
    """A source on the network, which serves `content`."""

    name = "network"

    def __init__(self, content: bytes) -> None:
        self.content, self.served = content, 0

    def version(self, _competition: Downloadable) -> str | None:
        return "1"

    def at_hand(self, _competition: Downloadable) -> bool:
        return False

    def fetch(self, _competition: Downloadable, folder: Path, _report: Report = lambda _: None) -> Path:
        raise NotImplementedError

    def pieces(self, _competition: Downloadable, _report: Report = lambda _: None) -> Iterator[bytes]:
        self.served += 1
        yield self.content


def packed(kind: str) -> bytes:
    sink = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("a.txt", CONTENT)
    elif kind == "7z":
        import py7zr

        with py7zr.SevenZipFile(sink, "w") as seven:
            seven.writestr(CONTENT, "a.txt")
    else:
        with tarfile.open(fileobj=sink, mode="w:gz" if kind == "tar.gz" else "w") as tar:
            info = tarfile.TarInfo("a.txt")
            info.size = len(CONTENT)
            tar.addfile(info, io.BytesIO(CONTENT))
    return sink.getvalue()


def read_all(container: Container) -> dict[str, bytes]:
    return {name: file.read() for name, file in container.stream(container.sizes)}


FAULTS: dict[str, Callable[[FaultyBucket], Any]] = {
    "503": lambda s3: s3.faults.status(503, "GET", times=ALWAYS),
    "500": lambda s3: s3.faults.status(500, "GET", times=ALWAYS),
    "reset": lambda s3: s3.faults.reset("GET", times=ALWAYS),
    "cut short": lambda s3: s3.faults.truncate(10, "GET", times=ALWAYS),
    "away": lambda s3: s3.stop(),
    "503 to HEAD": lambda s3: s3.faults.status(503, "HEAD", times=ALWAYS),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "7z"])
def test_an_archive_that_cannot_be_read_is_not_a_damaged_one(
    store: Store, faulty_s3: FaultyBucket, kind: str, fault: str
) -> None:
    url = store.url(f"a.{kind}")
    store.write(url, packed(kind))
    FAULTS[fault](faulty_s3)
    with pytest.raises(Exception, match=r".") as caught:
        read_all(open_container(url))
    assert not isinstance(caught.value, DownloadError), caught.value
    assert cause_of(caught.value).passes, repr(caught.value)
    faulty_s3.start() if fault == "away" else faulty_s3.faults.clear()
    assert read_all(open_container(url)) == {"a.txt": CONTENT}


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "7z"])
def test_an_archive_without_its_end_is_a_damaged_one(store: Store, kind: str) -> None:
    url = store.url(f"a.{kind}")
    store.write(url, packed(kind)[:200])
    with pytest.raises(Exception, match=r".") as caught:
        read_all(open_container(url))
    assert cause_of(caught.value).kind == "damaged data", repr(caught.value)


def test_an_archive_whose_check_fails_is_kept_and_recorded_once_the_store_answers(
    store: Store, faulty_s3: FaultyBucket, digits: Competition
) -> None:
    source, said = Network(bundle("digits")), list[str]()
    rules = [faulty_s3.faults.status(503, "GET", r"digits\.zip$", times=4), faulty_s3.faults.status(503, "PUT", "json")]
    record = acquire(store, digits, source, on_progress=said.append)
    assert [rule.hits for rule in rules] == [4, 1]
    assert source.served == 1, "it was not transferred again"
    assert record == recorded(store, digits, source)
    assert any(text.startswith("waiting for the store") for text in said), said


def test_an_archive_is_not_removed_for_a_store_that_is_away(
    store: Store, faulty_s3: FaultyBucket, digits: Competition
) -> None:
    faulty_s3.faults.status(503, "GET", r"digits\.zip$", times=ALWAYS)
    with pytest.raises(OSError) as caught:  # noqa: PT011
        acquire(store, digits, Network(bundle("digits")), patience=0)
    assert cause_of(caught.value).kind == "store"
    assert "raw/digits/digits.zip" in faulty_s3.names()


def test_an_archive_that_is_positively_wrong_is_removed(
    store: Store, faulty_s3: FaultyBucket, digits: Competition
) -> None:
    with pytest.raises(DownloadError, match="download it again"):
        acquire(store, digits, Network(bundle("digits")[:-100]))
    assert "raw/digits/digits.zip" not in faulty_s3.names()


def test_an_answer_cut_short_does_not_end_a_split(store: Store, faulty_s3: FaultyBucket) -> None:
    store.write(store.raw("digits"), bundle("digits"))
    job = Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits", "k")), key="k")
    rule = faulty_s3.faults.truncate(100, "GET", r"digits\.zip", times=ALWAYS)
    with pytest.raises(Exception, match=r".") as caught:
        materialise(job)
    assert rule.hits
    assert cause_of(caught.value).passes, "the task is tried again"
    faulty_s3.faults.clear()
    assert len(materialise(job)) == 5


class TestOpening:
    @pytest.mark.parametrize("fault", ["status", "reset", "lose_answer"])
    @pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
    def test_the_first_fault_does_not_end_it(
        self, store: Store, faulty_s3: FaultyBucket, fault: str, method: str
    ) -> None:
        number = (503,) if fault == "status" else ()
        rule = getattr(faulty_s3.faults, fault)(*number, method=method, path="probe", times=2)
        said: list[str] = []
        store.require_usable(on_wait=said.append)
        assert rule.hits == 2
        assert len(said) <= 1
        assert all(text.startswith("for the ") for text in said)

    def test_a_store_that_stays_away_is_named_without_advice_to_choose_another(
        self, store: Store, faulty_s3: FaultyBucket
    ) -> None:
        faulty_s3.faults.status(503, times=ALWAYS)
        with pytest.raises(StoreError, match="cannot be written") as caught:
            store.require_usable(0)
        assert "choose another" not in str(caught.value)
        assert "is the server up" in str(caught.value)
        assert cause_of(caught.value).kind == "store"

    def test_a_store_that_refuses_is_not_tried_again(self, store: Store, faulty_s3: FaultyBucket) -> None:
        rule = faulty_s3.faults.status(403, times=ALWAYS)
        with pytest.raises(StoreError, match="AWS_ACCESS_KEY_ID"):
            store.require_usable()
        assert rule.hits <= 6, "three creations at once, and for each a look at what is there"
