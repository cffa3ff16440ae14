"""Iteration over what threads compute."""

from __future__ import annotations

import io
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from common.concurrency import WORKERS, end_threads, parallel_map, prefetch, table_threads
from competitions.tables import columns, pieces


def test_the_next_value_is_computed_while_one_is_used() -> None:
    computed = threading.Event()

    def values() -> Iterator[int]:
        yield 0
        computed.set()
        yield 1

    found = prefetch(values())
    assert next(found) == 0
    assert computed.wait(60)
    assert list(found) == [1]


@pytest.mark.parametrize("values", [[], [None], [1, 2, 3], [[], [0]]])
def test_all_values_come_in_order(values: list[object]) -> None:
    assert list(prefetch(values)) == values


@pytest.mark.parametrize("count", [1, 3, 20])
def test_no_more_than_some_are_computed_ahead(count: int) -> None:
    taken, most_ahead = 0, 0
    enough = threading.Event()

    def values() -> Iterator[int]:
        nonlocal most_ahead
        for number in range(10):
            most_ahead = max(most_ahead, number - taken)
            if number == min(9, count):
                enough.set()
            yield number

    found = prefetch(values(), count)
    for wanted in range(10):
        assert next(found) == wanted
        assert enough.wait(60), "as many as it may"
        taken += 1
    assert most_ahead <= count
    assert list(found) == []


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_comes_after_the_values_before_it(count: int) -> None:
    def values() -> Iterator[int]:
        yield 0
        raise ValueError("damaged")

    found = prefetch(values(), count)
    assert next(found) == 0
    with pytest.raises(ValueError, match="damaged"):
        next(found)


@pytest.mark.parametrize("count", [1, 3])
def test_no_thread_remains_when_it_is_closed_early(count: int) -> None:
    found = prefetch(range(10), count)
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]  # it is a generator
    assert not [each for each in threading.enumerate() if each.name.startswith("ahead")]


class TestOnAllCores:
    """Values are computed by several threads, and come in their order."""

    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_every_value_is_computed(self, count: int) -> None:
        assert parallel_map(lambda value: value * value, range(count)) == [value * value for value in range(count)]

    @pytest.mark.skipif(WORKERS < 2, reason="one core")
    def test_two_are_computed_at_the_same_time(self) -> None:
        both = threading.Barrier(2, timeout=60)
        assert sorted(parallel_map(lambda _: both.wait(), range(2))) == [0, 1]

    @pytest.mark.parametrize("started", [0, 2])
    def test_without_threads_the_rest_is_computed_by_this_one(
        self, started: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        submit = ThreadPoolExecutor.submit
        calls: list[int] = []

        def limited(self: ThreadPoolExecutor, function: Callable[[int], int], value: int) -> Future[int]:
            if len(calls) == started:
                raise RuntimeError("can't start new thread")
            calls.append(value)
            return submit(self, function, value)

        monkeypatch.setattr(ThreadPoolExecutor, "submit", limited)
        assert parallel_map(lambda value: -value, range(5)) == [0, -1, -2, -3, -4]
        assert len(calls) == started

    def test_an_error_of_the_function_is_raised(self) -> None:
        def fails(value: int) -> int:
            raise RuntimeError(f"value {value}")

        with pytest.raises(RuntimeError, match="value 0"):
            parallel_map(fails, range(3))


def test_without_threads_values_come_without_being_computed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
    assert list(prefetch(range(3))) == [0, 1, 2]


def test_threads_end_and_begin_again() -> None:
    assert table_threads().submit(int, "7").result() == 7
    end_threads()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tables")]
    assert table_threads().submit(int, "8").result() == 8


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert table_threads().submit(int, "7").result() == 7
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_with_threads).get(30) == 7


def _with_threads() -> int:
    return table_threads().submit(int, "7").result(20)


def test_work_that_no_thread_takes_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be started, as under a limit of memory, pandas reads the file, and the next one finds threads."""
    monkeypatch.setattr(pieces, "PIECE", 256)
    content = ("p,q\n" + "1,x_\n" * 2_000).encode()
    end_threads()

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert columns.read_stream(io.BytesIO(content)) is None
    assert columns.read_stream(io.BytesIO(content)) is not None
