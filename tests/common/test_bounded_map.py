"""Calls in threads: results in order, and only a bounded number of calls and bytes under way."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from common.concurrency import Budget, bounded_map
from tests.waiting import until


class Watched:
    """Calls that wait for `release`, and how many of them were under way at most."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.begun = self.under_way = self.most = self.made = 0
        self._lock = threading.Lock()

    def __call__(self, number: int) -> int:
        with self._lock:
            self.begun += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        assert self.release.wait(60)
        with self._lock:
            self.under_way -= 1
        return number

    def calls(self, sizes: Iterator[int]) -> Iterator[tuple[int, Callable[[], int]]]:
        for number, size in enumerate(sizes):
            self.made += 1
            yield size, partial(self, number)


@pytest.mark.parametrize(("size", "expected"), [(1, 8), (100, 8), (300, 3), (2000, 1)])
def test_the_window_is_bounded_by_number_and_by_bytes(size: int, expected: int) -> None:
    watched = Watched()
    results = bounded_map(watched.calls(itertools.repeat(size)), count=8, total=1000)
    thread = threading.Thread(target=lambda: [next(results) for _ in range(50)])
    thread.start()
    until(lambda: watched.begun == expected and watched.made == expected + 1, 30)
    watched.release.set()
    thread.join()
    results.close()  # of an endless iterable, a window was taken
    assert watched.most == expected
    assert watched.made <= 50 + expected + 1


def test_results_come_in_order() -> None:
    assert list(bounded_map(((1, partial(int, number)) for number in range(100)), count=7, total=5)) == list(range(100))


def test_an_error_ends_it_and_nothing_goes_on_behind_it() -> None:
    begun = []

    def call(number: int) -> int:
        begun.append(number)
        return 1 // (number - 3)

    with pytest.raises(ZeroDivisionError):
        list(bounded_map(((1, partial(call, number)) for number in range(1000)), count=2, total=100))
    assert len(begun) < 10
    assert threading.active_count() < 50


def test_a_budget_is_shared_and_one_large_request_does_not_wait_for_ever() -> None:
    budget = Budget(10)
    budget.take(6)
    taken = []

    def take(size: int) -> None:
        budget.take(size)
        taken.append(size)

    threads = [threading.Thread(target=take, args=(size,)) for size in (6, 100)]
    threads[0].start()
    assert not taken
    budget.give(6)
    threads[0].join(30)
    assert taken == [6]
    threads[1].start()
    budget.give(6)
    threads[1].join(30)
    assert taken == [6, 100]
