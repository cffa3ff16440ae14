"""Iteration over what threads compute, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")


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


def ahead(values: Iterable[T]) -> Iterator[T]:
    """Yield the values, while a thread computes the next one. Two of them are in memory at a time."""
    iterator = iter(values)
    end: list[T] = []

    def following() -> list[T]:
        return next(([value] for value in iterator), end)

    with ThreadPoolExecutor(1, "ahead") as pool:
        call = pool.submit(following)
        while found := call.result():
            call = pool.submit(following)
            yield from found
