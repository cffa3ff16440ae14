"""Calls in threads whose results come in order, with a bound on what is under way.

| function | yields | bound |
|---|---|---|
| `ordered_map` | results of a function for many values, by a pool of the caller | results that wait |
| `bounded_map` | results of calls, mostly requests to a store | number of calls, and bytes that they hold |
| `prefetch` | the values of an iterator, the next ones of which a thread computes | values that wait |
| `parallel_map` | a list of results of a function, computed on all cores | none |
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

WORKERS = min(os.cpu_count() or 1, 8)
"""Threads that compute at the same time."""


@cache
def table_threads() -> Executor:
    """Threads for all tables that this process reads, one for each core: each keeps memory of its own.

    A call that is given to them must not wait for another one.
    """
    return ThreadPoolExecutor(WORKERS, "tables")


def end_threads() -> None:
    """End the threads for tables, for example before this process forks. The next table starts new ones."""
    table_threads().shutdown(wait=True, cancel_futures=True)
    table_threads.cache_clear()


os.register_at_fork(after_in_child=table_threads.cache_clear)  # threads stay behind


def ordered_map(
    pool: Executor, function: Callable[[V], T], values: Iterable[V], ahead: int | Callable[[V], int]
) -> Iterator[T]:
    """Yield `function(value)` for each value, in order, while the next ones are computed.

    `ahead` limits memory: the number of results that may wait before the next value is taken, or a function that
    computes it from the last value. When the iterator is closed or an error is raised, pending calls are cancelled.
    """
    waiting: deque[Future[T]] = deque()
    try:
        for value in values:
            waiting.append(pool.submit(function, value))
            while len(waiting) > (ahead if isinstance(ahead, int) else ahead(value)):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def prefetch(values: Iterable[T], count: int = 1) -> Iterator[T]:
    """Yield the values, while a thread computes the next ones: at most `count` of them, besides the one in use.

    Where no thread can be started, this one computes them.
    """
    iterator = iter(values)
    end: list[T] = []

    def following() -> list[T]:
        return next(([value] for value in iterator), end)

    with ThreadPoolExecutor(1, "prefetch") as pool:
        calls: deque[Future[list[T]]] = deque()
        try:
            calls.extend(pool.submit(following) for _ in range(count))
        except RuntimeError:  # under a limit of memory
            yield from iterator
            return
        try:
            while batch := calls.popleft().result():
                calls.append(pool.submit(following))
                yield from batch
        finally:
            for call in calls:
                call.cancel()


def parallel_map(function: Callable[[V], T], values: Iterable[V]) -> list[T]:
    """`function(value)` for each value, in order. Where no threads can be started, this one computes the rest.

    It is faster if the function releases the interpreter's lock, as large operations of NumPy, SciPy and Arrow do.
    """
    values, calls = list(values), list[Future[T]]()
    with ThreadPoolExecutor(WORKERS, "cores") as pool:
        try:
            for value in values:
                calls.append(pool.submit(function, value))
        except RuntimeError:  # under a limit of memory
            pass
        return [*(call.result() for call in calls), *(function(value) for value in values[len(calls) :])]


def bounded_map(calls: Iterable[tuple[int, Callable[[], T]]], *, count: int, total: int) -> Generator[T, None, None]:
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
    bytes_under_way = 0
    with ThreadPoolExecutor(count) as pool:
        try:
            for size, call in calls:
                while waiting and (len(waiting) >= count or bytes_under_way + size > total):
                    finished_size, future = waiting.popleft()
                    yield future.result()
                    bytes_under_way -= finished_size
                    del future  # and the result, while the next one is waited for
                waiting.append((size, pool.submit(call)))
                bytes_under_way += size
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
