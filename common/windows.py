"""Concurrent calls of which only a bounded number, and a bounded number of bytes, is under way at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def windowed(calls: Iterable[tuple[int, Callable[[], T]]], *, count: int, total: int) -> Generator[T, None, None]:
    """Yield the results of `calls`, in order, while the next calls run in threads.

    Args:
        calls: the bytes that each call or its result holds in memory, and the call. The iterable is advanced in the
            caller's thread, one call ahead of the window, so it can be endless.
        count: number of calls under way at most.
        total: number of bytes under way at most. A call with more bytes runs alone.

    An error is raised when it is the turn of its call. Calls that have not begun are then cancelled, and those that
    have are waited for.
    """
    waiting: deque[tuple[int, Future[T]]] = deque()
    held = 0
    with ThreadPoolExecutor(count) as pool:
        try:
            for size, call in calls:
                while waiting and (len(waiting) >= count or held + size > total):
                    freed, future = waiting.popleft()
                    yield future.result()
                    held -= freed
                    del future  # and the result, while the next one is waited for
                waiting.append((size, pool.submit(call)))
                held += size
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, future in waiting:
                future.cancel()


class Budget:
    """A number of bytes that several threads share. `take` waits until they are free."""

    def __init__(self, limit: int) -> None:
        self._limit, self._taken = limit, 0
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Take `size` bytes. More than the limit is given when nothing else is taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + size <= self._limit)
            self._taken += size

    def give(self, size: int) -> None:
        """Return `size` bytes."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()
