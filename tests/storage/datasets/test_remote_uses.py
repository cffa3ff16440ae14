"""Uses of datasets in an object store: who fetches a dataset keeps it from being removed, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from common.processes import identity
from storage import remote_uses
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import find
from storage.datasets.local_copy import local_copy
from storage.datasets.uses import is_used, use, uses_url
from storage.store import Store
from storage.upkeep import gc
from tests.s3.faults import ALWAYS
from tests.s3.fixtures import Bucket, FaultyBucket
from tests.stores import put_dataset
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HOUR = 3600.0
USER = """
import sys, time
from pathlib import Path
from storage.dataset import Dataset
from storage.datasets.uses import use
from storage.store import Store
from storage.uses import Continuing
continuing = Continuing(Path.cwd(), float(sys.argv[2])) if float(sys.argv[2]) else None
with use(Store(sys.argv[1]), Dataset("v1", "digits"), continuing):
    print("uses", flush=True)
    time.sleep(600)
"""


def collect(store: Store) -> list[str]:
    """What collecting the old datasets says of each."""
    return [each.state for each in gc.old_datasets(store, gc.everything(store), None, dry=False)]


def test_collecting_a_dataset_does_not_break_a_fetch_of_it(faulty_s3: FaultyBucket, tmp_path: Path) -> None:
    store, fetched = Store(faulty_s3.url), list[str]()
    first = put_dataset(store, "digits", key="one")
    put_dataset(store, "digits", key="two")
    held = faulty_s3.faults.hang("GET", r"one/public/.*csv", times=ALWAYS)

    def fetch() -> None:
        with local_copy(store, first, "public", Cache(tmp_path / "cache", 10**9)) as folder:
            fetched.extend(path.name for path in (folder / "public").iterdir())

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    until(lambda: held.hits, what="the fetch")
    assert collect(store) == ["in use"]
    held.release()
    thread.join()
    assert "train.csv" in fetched
    assert collect(store) == ["old"]
    assert find(store, first) is None
    assert not [name for name in faulty_s3.names() if "one" in name], "nothing of the use is left either"


@pytest.mark.parametrize(("seconds", "lives"), [(0.0, False), (HOUR, True)])
def test_the_use_of_a_killed_process_ends_unless_its_agent_goes_on(s3: Bucket, seconds: float, lives: bool) -> None:
    store = Store(s3.url)
    dataset = put_dataset(store, "digits")
    with subprocess.Popen(
        [sys.executable, "-c", USER, store.root, str(seconds)], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"uses\n"
        assert is_used(store, dataset)
        process.kill()
    assert is_used(store, dataset) == lives


class TestAnotherMachine:
    """Nobody knows whether its process lives, and its clock may be wrong."""

    def put(self, store: Store, dataset: Dataset, seconds: float) -> None:
        holder = {**identity(), "machine": "another"}
        store.write_json(f"{uses_url(store, dataset)}/1.json", {"holder": holder, "seconds": seconds})

    @pytest.mark.parametrize("jump", [-12 * HOUR, 0.0, 12 * HOUR])
    def test_its_use_counts_for_the_time_it_asked_for_by_the_stores_clock(
        self, s3: Bucket, monkeypatch: pytest.MonkeyPatch, jump: float
    ) -> None:
        store = Store(s3.url)
        dataset, now = put_dataset(store, "digits"), remote_uses._now
        plain = time.time
        self.put(store, dataset, HOUR)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: plain() + jump)
            assert is_used(store, dataset)
        monkeypatch.setattr(remote_uses, "_now", lambda store: now(store) + HOUR + 1)
        assert not is_used(store, dataset)
        assert not [name for name in s3.names() if ".uses" in name]


def test_a_use_is_renewed_while_it_lasts(faulty_s3: FaultyBucket) -> None:
    store = Store(faulty_s3.url)
    folder = uses_url(store, put_dataset(store, "digits"))
    faulty_s3.faults.status(403, "PUT", r"\.uses/", nth=2, times=3)  # unlike 503, not tried again with longer waits
    with remote_uses.use(store, folder, beat=0.01):
        until(lambda: faulty_s3.proxy.count("PUT", r"\.uses/") > 8, what="renewals, after some that failed")
        assert remote_uses.in_use(store, folder)
    assert not remote_uses.in_use(store, folder)


def test_who_may_only_read_the_store_uses_it_nevertheless(faulty_s3: FaultyBucket) -> None:
    store = Store(faulty_s3.url)
    dataset = put_dataset(store, "digits")
    refused: Any = faulty_s3.faults.status(403, "PUT", r"\.uses/", times=ALWAYS)
    with use(store, dataset) as found:
        assert found == dataset
    assert refused.hits
