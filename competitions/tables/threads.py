"""Iteration over what threads compute, in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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

    What they are given must not wait for anything else that they are given.
    """
    return ThreadPoolExecutor(WORKERS, "tables")


def end_threads() -> None:
    """End these threads, such as before this process forks. The next table that is read starts new ones."""
    table_threads().shutdown(wait=True, cancel_futures=True)
    table_threads.cache_clear()


os.register_at_fork(after_in_child=table_threads.cache_clear)  # threads stay behind


def in_order(
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


def ahead(values: Iterable[T], count: int = 1) -> Iterator[T]:
    """Yield the values, while a thread computes the next ones: at most `count` of them, besides the one in use.

    Where no thread can be started, this one computes them.
    """
    iterator = iter(values)
    end: list[T] = []

    def following() -> list[T]:
        return next(([value] for value in iterator), end)

    with ThreadPoolExecutor(1, "ahead") as pool:
        calls: deque[Future[list[T]]] = deque()
        try:
            calls.extend(pool.submit(following) for _ in range(count))
        except RuntimeError:  # under a limit of memory
            yield from iterator
            return
        try:
            while found := calls.popleft().result():
                calls.append(pool.submit(following))
                yield from found
        finally:
            for call in calls:
                call.cancel()


def on_all_cores(function: Callable[[V], T], values: Iterable[V]) -> list[T]:
    """`function(value)` for each value, in order. Where no threads can be started, this one computes the rest.

    It pays if the function leaves the interpreter to others, as large operations of NumPy, SciPy and Arrow do.
    """
    values, calls = list(values), list[Future[T]]()
    with ThreadPoolExecutor(WORKERS, "cores") as pool:
        try:
            for value in values:
                calls.append(pool.submit(function, value))
        except RuntimeError:  # under a limit of memory
            pass
        return [*(call.result() for call in calls), *(function(value) for value in values[len(calls) :])]
