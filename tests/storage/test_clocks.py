"""The clock is set by hours: nobody loses a lease, a dataset or a copy, and nobody waits for the dead."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import botocore.auth
import pytest

from common.processes import identity
from storage import uses
from storage.cache import Cache
from storage.lease import lease
from storage.store import Store
from storage.writers import StoreError
from tests.s3.fixtures import FaultyBucket
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOUR = 3600.0
KILLED = """
import os, sys
from pathlib import Path
from storage.uses import Continuing, use
with use(Path(sys.argv[1]), Continuing(Path.cwd(), float(sys.argv[2]))):
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(params=[-12 * HOUR, 12 * HOUR], ids=["back", "forward"])
def jump(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The clock jumps when the event is set."""
    jumped, plain = threading.Event(), time.time
    monkeypatch.setattr(time, "time", lambda: plain() + (request.param if jumped.is_set() else 0.0))
    return jumped


def test_a_lease_is_kept_and_one_of_the_dead_is_taken(jump: threading.Event, store: Store) -> None:
    elsewhere = {"holder": {**identity(), "machine": "another"}, "host": "another", "beat": "1"}
    with lease(store, "mine") as mine:
        jump.set()
        with lease(store, "mine", wait=False) as other:
            assert other is None
        assert mine is not None
        mine.require_held()
    store.write_json(store.url("locks", "work", "00000001.json"), elsewhere)
    with lease(store, "work", stale_after=0.2) as mine:
        assert mine is not None


@pytest.mark.service("s3")
def test_a_store_that_refuses_a_wrong_clock_has_the_clock_in_its_message(
    faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = botocore.auth.get_current_datetime

    def hours_later(*arguments: Any, **options: Any) -> datetime:
        return plain(*arguments, **options) + timedelta(hours=12)

    monkeypatch.setattr(botocore.auth, "get_current_datetime", hours_later)
    with pytest.raises(StoreError, match="the clock of this machine"):
        Store(faulty_s3.url).require_usable()


def test_a_run_whose_orchestrator_was_killed_keeps_its_data_for_its_time(jump: threading.Event, tmp_path: Path) -> None:
    folders = tmp_path / "long.uses", tmp_path / "short.uses"
    for folder, seconds in zip(folders, (HOUR, 0.2), strict=True):
        subprocess.run([sys.executable, "-c", KILLED, str(folder), str(seconds)], cwd=ROOT, check=False)
    jump.set()
    assert uses.in_use(folders[0])
    until(lambda: not uses.in_use(folders[1]), 10, what="the end of the short run")
    assert not folders[1].exists()


def test_copies_stay_complete_and_are_removed_when_nobody_uses_them(jump: threading.Event, tmp_path: Path) -> None:
    cache, made = Cache(tmp_path, limit=100), list[Path]()
    with cache.use("a", "a", 1, made.append):
        jump.set()
        with cache.use("a", "a", 1, made.append):
            assert not cache.remove("a")
    assert len(made) == 1
    assert cache.remove("a")
