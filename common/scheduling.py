"""List scheduling: each task in its order goes to the slot that is free first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


def finish_times(tasks: Iterable[tuple[float, float]], slots: int, start: float = 0) -> list[float]:
    """The time at which each task ends, in seconds.

    Args:
        tasks: (when it is ready, how many seconds it takes), in the order in which slots are given to them.
        slots: number of tasks at the same time.
        start: when the slots are free.

    >>> finish_times([(0, 10), (0, 10), (0, 10)], slots=2)
    [10, 10, 20]
    """
    free = [start] * slots
    ends = []
    for ready, seconds in tasks:
        ends.append(max(ready, free[0]) + seconds)
        heapq.heapreplace(free, ends[-1])
    return ends
