"""One of several processes does the work: on a disk, in a bucket, and when the one that had begun is gone."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

import storage.lease as lease_module
from common.processes import alive, identity
from storage import remote
from storage.lease import LeaseLost, lease
from storage.store import Store
from storage.writers import StoreError
from tests.s3.fixtures import Bucket, FaultyBucket
from tests.waiting import until

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from storage.lease import lease
from storage.store import Store
with lease(Store(sys.argv[1]), "work") as mine:
    print("held", flush=True)
    sys.stdin.readline()
    mine.require_held()
"""


@contextmanager
def holder(store: Store) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease until it gets a line, and then requires that it still does."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, store.root]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


class Everywhere:
    """What a lease promises, on any store."""

    def test_one_at_a_time(self, store: Store) -> None:
        inside, order, lock = 0, [], threading.Lock()

        def work(number: int) -> None:
            nonlocal inside
            with lease(store, "work"):
                with lock:
                    inside += 1
                    assert inside == 1
                order.append(number)
                store.write_json(store.url("last"), number)
                with lock:
                    inside -= 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(order) == [0, 1, 2, 3]
        assert len(store.glob("locks/work/*")) == 2, "old generations are removed"

    def test_a_slow_process_does_not_enter_by_creating_an_old_generation(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(3):
            with lease(store, "work"):
                pass
        listed, read = lease_module._generations, lease_module._read
        stale = [[1]]
        monkeypatch.setattr(lease_module, "_generations", lambda *where: stale.pop() if stale else listed(*where))
        monkeypatch.setattr(
            lease_module, "_read", lambda *where: {"released": True} if where[-1] == 1 else read(*where)
        )
        with ExitStack() as held:
            held.enter_context(lease(store, "work"))
            stale.append([1])  # read before generations 2 to 4 came and went
            assert held.enter_context(lease(store, "work", wait=False)) is None
        assert not stale

    def test_who_need_not_wait_is_told(self, store: Store) -> None:
        with lease(store, "work") as first, lease(store, "work", wait=False) as second:
            assert first is not None
            assert second is None
            with lease(store, "other", wait=False) as third:
                assert third is not None

    def test_the_lease_of_a_killed_process_is_free_at_once(self, store: Store) -> None:
        with holder(store) as process:
            with lease(store, "work", wait=False) as mine:
                assert mine is None
            process.kill()
            process.wait()
            with lease(store, "work", wait=False) as mine:
                assert mine is not None

    def test_a_process_that_is_stopped_loses_it_and_finds_out(self, store: Store) -> None:
        with holder(store) as process:
            process.send_signal(signal.SIGSTOP)
            with lease(store, "work", stale_after=0.5) as mine:
                assert mine is not None
                process.send_signal(signal.SIGCONT)
                _, errors = process.communicate("\n")
                assert "LeaseLost" in errors
                assert process.returncode == 1
                mine.require_held()

    def test_who_waits_and_holds_in_the_same_thread_is_told(self, store: Store) -> None:
        with lease(store, "work"), pytest.raises(RuntimeError, match="already"), lease(store, "work"):
            pass
        with lease(store, "work", wait=False) as mine:
            assert mine is not None

    def test_what_this_process_created_without_knowing_it_takes(self, store: Store) -> None:
        lost = {"holder": identity(), "host": "this", "nonce": "of a create without an answer", "beat": "1"}
        store.write_json(store.url("locks", "work", "00000003.json"), lost)
        with lease(store, "work", wait=False) as mine:
            assert mine is not None
            assert mine.generation == 4

    def test_a_holder_elsewhere_without_a_sign_of_life_loses_it(self, store: Store) -> None:
        elsewhere = {"holder": {**identity(), "machine": "another"}, "host": "another", "beat": "1"}
        store.write_json(store.url("locks", "work", "00000007.json"), elsewhere)
        with lease(store, "work", wait=False) as mine:
            assert mine is None
        heard: list[str] = []
        with lease(store, "work", on_wait=heard.append, stale_after=0.2) as mine:
            assert mine is not None
            mine.require_held()
        assert heard
        assert "another" in heard[0]

    def test_who_was_taken_for_dead_publishes_nothing(self, store: Store) -> None:
        with lease(store, "work") as mine:
            assert mine is not None
            mine.require_held()
            store.write_json(store.url("locks", "work", "00000002.json"), {"holder": None})
            with pytest.raises(LeaseLost, match="took over"):
                mine.require_held()


class TestOnADisk(Everywhere):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return Store(str(tmp_path))

    def test_without_hard_links(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def link(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
        self.test_one_at_a_time(store)
        store.require_usable()

    def test_a_torn_record_is_waited_for_not_believed(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "locks/work").mkdir(parents=True)
        (tmp_path / "locks/work/00000001.json").write_text("")
        with lease(store, "work", wait=False) as mine:
            assert mine is None
        with lease(store, "work", stale_after=0.1) as mine:
            assert mine is not None


class TestInABucket(Everywhere):
    @pytest.fixture
    def store(self, s3: Bucket) -> Store:
        return Store(s3.url)


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that give up at once, and frequent heartbeats."""
    monkeypatch.setattr(lease_module, "BEAT_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setitem(remote.RETRYING_CLIENT, "retries", {"mode": "standard", "max_attempts": 1})
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.1)


@pytest.mark.parametrize("effect", ["lose_answer", "repeat"])
def test_a_create_that_is_repeated_is_recognised(faulty_s3: FaultyBucket, effect: str) -> None:
    rule = getattr(faulty_s3.faults, effect)("PUT", "locks/work")
    with lease(Store(faulty_s3.url), "work", wait=False) as mine:
        assert rule.hits == 1
        assert mine is not None
        assert mine.generation == 1


def test_heartbeats_go_on_after_one_that_hangs(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    with lease(Store(faulty_s3.url), "work"):
        rule = faulty_s3.faults.hang("PUT", "locks/work")
        until(lambda: rule.hits, what="a heartbeat")
        beats = rule.seen
        until(lambda: rule.seen > beats + 1, 30, what="a heartbeat after the one that hangs")


def test_who_waits_endures_that_the_store_is_away(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    store, heard, entered = Store(faulty_s3.url), [""], threading.Event()

    def wait() -> None:
        with lease(store, "work", on_wait=heard.append, stale_after=2):
            entered.set()

    with lease(store, "work") as mine:
        assert mine is not None
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: "process" in heard[-1], what="the second to wait")
        faulty_s3.proxy.stop()
        until(lambda: "store" in heard[-1], what="the second to notice")
        faulty_s3.proxy.start()
        until(lambda: "process" in heard[-1] or entered.is_set(), what="the second to go on")
        mine.require_held()
    thread.join()
    assert entered.is_set()


def test_a_store_on_which_everybody_creates_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://shared")
    store.require_usable()
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda self, path, value, **_: self.pipe({path: value}))
    monkeypatch.setattr(MemoryFileSystem, "pipe", lambda self, files: self.store.update(_files(files)))
    with pytest.raises(StoreError, match=r"memory://shared .*If-None-Match"):
        store.require_usable()


def _files(contents: dict[str, bytes]) -> dict[str, MemoryFile]:
    return {path: MemoryFile(None, path, content) for path, content in contents.items()}


def test_a_pid_that_is_used_again_is_another_process() -> None:
    assert alive(identity())
    assert alive({**identity(), "started": "1"}) is False
    assert alive({**identity(), "machine": "another"}) is None
    assert alive(json.loads(json.dumps(identity())))


def test_who_was_silent_for_too_long_is_told_while_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(
        lease_module, "BEATS_BETWEEN_CHECKS", 2
    )  # as a machine looks that does not know of its own silence
    store, told = Store(str(tmp_path)), threading.Event()
    with lease(store, "work") as mine:
        assert mine is not None
        with mine.ending(told.set):
            successor = f"{mine.generation + 1:08d}.json"
            until(lambda: store.exists(store.url("locks", "work", f"{mine.generation:08d}.json")))
            assert not told.is_set()
            store.write_json(store.url("locks", "work", successor), {"host": "another", "beat": "1"})
            assert told.wait(60)
        with pytest.raises(LeaseLost):
            mine.require_held()
