"""Work on several threads whose results are needed in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")


def in_order(
    pool: Executor, function: Callable[[V], T], values: Iterable[V], ahead: int | Callable[[V], int]
) -> Iterator[T]:
    """`function` of each value, in the order of the values, with some begun ahead.

    `ahead` is how many results may wait while the next value is taken, or says so for the value just taken: memory is
    bounded by it. What has not begun when the iterator is closed, or an error is raised, is cancelled.
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
