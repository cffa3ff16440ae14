"""When a flow run starts Dask workers, and which work they get."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from common.settings import get_settings
from storage.datasets.cluster import ClusterError, DaskExecutor
from storage.datasets.executors import Serial
from tasks.wiring import dask_workers
from tasks.wiring.dask_workers import SMALL_DOWNLOAD_BYTES, Workers
from tests.waiting import until


def quiet(_: str) -> None:
    """What waits is of no interest here."""


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Clusters that only note when they start and end."""
    noted: list[str] = []

    @contextlib.contextmanager
    def fake(address: str | None, *_: Any) -> Iterator[str]:
        noted.append("start")
        yield address or "tcp://local"
        noted.append("end")

    monkeypatch.setattr(dask_workers, "cluster", fake)
    get_settings.cache_clear()
    yield noted
    get_settings.cache_clear()


def test_small_downloads_need_no_workers(events: list[str]) -> None:
    with Workers() as some:
        assert isinstance(some.executor_for(SMALL_DOWNLOAD_BYTES, quiet), Serial)
    assert events == []


def test_tasks_at_once_share_one_cluster_that_ends_with_the_flow_run(events: list[str]) -> None:
    with Workers() as some, ThreadPoolExecutor(8) as threads:
        executors = list(threads.map(lambda _: some.executor_for(SMALL_DOWNLOAD_BYTES + 1, quiet), range(32)))
        assert events == ["start"]
        assert all(isinstance(each, DaskExecutor) and each.address == "tcp://local" for each in executors)
    assert events == ["start", "end"]


@pytest.mark.parametrize("setting", ["MLEBENCH_DASK_ADDRESS", "MLEBENCH_DASK_DASHBOARD"])
def test_workers_that_the_user_asked_for_do_all_the_work(
    events: list[str], setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(setting, "tcp://127.0.0.1:1")
    get_settings.cache_clear()
    with Workers() as some:
        assert isinstance(some.executor_for(0, quiet), DaskExecutor)
    assert events == ["start", "end"]


def test_nothing_starts_after_the_flow_run(events: list[str]) -> None:
    with Workers() as some:
        pass
    with pytest.raises(ClusterError, match="has ended"):
        some.executor_for(SMALL_DOWNLOAD_BYTES + 1, quiet)
    assert events == []


def test_what_starts_while_the_flow_run_ends_is_closed(events: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    starting, go_on = Event(), Event()
    fake = dask_workers.cluster

    @contextlib.contextmanager
    def slow(*given: Any) -> Iterator[str]:
        starting.set()
        assert go_on.wait(60)
        with fake(*given) as address:
            yield address

    monkeypatch.setattr(dask_workers, "cluster", slow)
    some = Workers()
    with ThreadPoolExecutor(2) as threads:
        task = threads.submit(some.start)
        assert starting.wait(60)
        ending = threads.submit(some.__exit__, None, None, None)
        until(lambda: some._ended, 60, what="the end of the flow run")
        go_on.set()
        ending.result(60)
        with pytest.raises(ClusterError, match="has ended") as raised:
            task.result(60)
    assert raised.value.kind == "missing", "it is not tried again"
    assert events == ["start", "end"]


def test_a_start_that_failed_is_tried_again(events: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fine = dask_workers.cluster

    def failing(*_: Any) -> Any:
        raise ClusterError("away")

    monkeypatch.setattr(dask_workers, "cluster", failing)
    with Workers() as some:
        with pytest.raises(ClusterError, match="away"):
            some.start()
        monkeypatch.setattr(dask_workers, "cluster", fine)
        assert some.start() == "tcp://local"
    assert events == ["start", "end"]


def _pid(_: object) -> int:
    return os.getpid()


def test_a_local_cluster_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_DASK_WORKERS", "1")
    get_settings.cache_clear()
    try:
        with Workers() as some, ThreadPoolExecutor(1) as thread:  # as a task, in another thread than the flow
            executor = thread.submit(some.executor_for, SMALL_DOWNLOAD_BYTES + 1, quiet).result()
            assert list(executor.map(_pid, [None])) != [os.getpid()]
    finally:
        get_settings.cache_clear()
