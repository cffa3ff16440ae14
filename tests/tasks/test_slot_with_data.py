"""A run has its data before it takes one of the agents' slots."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from storage.dataset import Dataset
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.store import Store
from tasks.wiring.context import local_cache
from tasks.wiring.host import slot, slot_with_data
from tests.bundles import bundle
from tests.s3.fixtures import FaultyBucket
from tests.waiting import until

DIGITS = Dataset("v1", "digits", "k")
AGENTS = 3  # a number of slots that no other test uses, because the slots are those of the process


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENTS", str(AGENTS))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def store(faulty_s3: FaultyBucket) -> Store:
    store = Store(faulty_s3.url)
    store.write(store.raw("digits"), bundle("digits"))
    materialise(Job("digits", store.raw("digits"), store.prepared(DIGITS), key="k"))
    return store


class Run:
    """A run in a thread: `has_slot` while it holds its slot, until `end` is called."""

    def __init__(self, store: Store) -> None:
        self.files: list[str] = []
        self.waits: list[str] = []
        self.has_slot, self._end = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._work, args=(store,))
        self.thread.start()

    def _work(self, store: Store) -> None:
        with slot_with_data(store, DIGITS, None, self.waits.append) as prepared:
            self.files = sorted(path.name for path in (prepared / "public").iterdir())
            self.has_slot.set()
            self._end.wait(60)

    def end(self) -> None:
        self._end.set()
        self.thread.join()


def test_a_waiting_run_fetches_its_data(store: Store) -> None:
    with slot("agents", AGENTS), slot("agents", AGENTS), slot("agents", AGENTS):
        run = Run(store)
        until(lambda: any(entry.complete for entry in local_cache().entries()), what="the copy before the slot")
        assert not run.has_slot.is_set()
    assert run.has_slot.wait(60)
    assert "train.csv" in run.files
    run.end()


def test_a_fetch_takes_no_slot(store: Store, faulty_s3: FaultyBucket) -> None:
    fetch = faulty_s3.faults.hang("GET", r"public/train\.csv")
    run = Run(store)
    until(lambda: fetch.hits)
    with slot("agents", AGENTS), slot("agents", AGENTS), slot("agents", AGENTS):
        assert not run.has_slot.is_set()
        fetch.release()
    assert run.has_slot.wait(60)
    run.end()


def test_a_run_without_room_waits_without_a_slot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_CACHE_LIMIT", "1000B")
    with local_cache().use("other", "other", 1000, lambda _: None):  # as the data of an agent that runs
        run = Run(store)
        until(lambda: run.waits)
        with slot("agents", AGENTS), slot("agents", AGENTS), slot("agents", AGENTS):
            assert not run.has_slot.is_set()
    assert run.has_slot.wait(60)
    assert "of space within MLEBENCH_CACHE_LIMIT" in run.waits[0]
    assert [entry.label for entry in local_cache().entries()] != ["other"]
    run.end()
