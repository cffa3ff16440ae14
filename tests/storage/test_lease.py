"""One of several processes does the work: on a disk, in a bucket, and when the one that had begun is gone."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

import storage.lease as lease_module
from common.processes import alive, identity
from storage.lease import LeaseLost, lease
from storage.store import Store
from tests.s3.fixtures import Bucket

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from storage.lease import lease
from storage.store import Store
with lease(Store(sys.argv[1]), "work"):
    print("held", flush=True)
    sys.stdin.read()
"""


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
        listed = lease_module._newest
        stale: list[tuple[int, dict[str, object] | None]] = [(1, {"released": True})]
        monkeypatch.setattr(lease_module, "_newest", lambda *where: stale.pop() if stale else listed(*where))
        with ExitStack() as held:
            held.enter_context(lease(store, "work"))
            stale.append((1, {"released": True}))  # read before generations 2 to 4 came and went
            assert held.enter_context(lease(store, "work", wait=False)) is None
        assert not stale

    def test_who_need_not_wait_is_told(self, store: Store) -> None:
        with lease(store, "work") as first, lease(store, "work", wait=False) as second:
            assert first is not None
            assert second is None
            with lease(store, "other", wait=False) as third:
                assert third is not None

    def test_the_lease_of_a_killed_process_is_free_at_once(self, store: Store) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, store.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        with lease(store, "work", wait=False) as mine:
            assert mine is None
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()
        with lease(store, "work", wait=False) as mine:
            assert mine is not None

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


def test_a_pid_that_is_used_again_is_another_process() -> None:
    assert alive(identity())
    assert alive({**identity(), "started": "1"}) is False
    assert alive({**identity(), "machine": "another"}) is None
    assert alive(json.loads(json.dumps(identity())))
