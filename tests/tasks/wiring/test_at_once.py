"""What threads of a process share is the same for those that ask first, at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tasks.wiring import grades, host

THREADS = 16


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(function: Callable[[], object]) -> list[object]:
    start = threading.Barrier(THREADS)

    def call(_number: int) -> object:
        start.wait()
        return function()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(call, range(THREADS)))


def test_slots_are_never_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Counted(threading.BoundedSemaphore):
        def __init__(self, limit: int) -> None:
            super().__init__(limit)
            made.append(self)

    monkeypatch.setattr(threading, "BoundedSemaphore", Counted)

    def work() -> None:
        with host.slot("downloads", 2):
            pass

    for _ in range(100):
        made.clear()
        host._semaphore.cache_clear()
        at_once(work)
        assert len(made) == 1


def test_all_threads_share_graders() -> None:
    for _ in range(100):
        grades._graders.cache_clear()
        assert len(set(map(id, at_once(grades.process_graders)))) == 1
