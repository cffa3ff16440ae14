"""A scheduler that has lost its workers is not waited for without a word, nor for ever."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest

from common.causes import cause_of
from common.errors import UserError
from storage.datasets import cluster
from storage.datasets.cluster import ClusterError, DaskExecutor
from tests.storage.datasets.dask_processes import DaskProcesses
from tests.waiting import until


def wait_for(path: str) -> str:
    until(lambda: Path(path).exists(), what=path)
    return path


def refuse(note: str) -> None:
    with Path(note).open("a") as file:
        file.write("tried\n")
    raise UserError("this cannot work")


def fail_on_a_full_disk() -> None:
    raise OSError(28, "No space left on device")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "REPORT_SECONDS", 0.2)


def end_workers(processes: list[object]) -> None:
    for process in processes[1:]:
        assert hasattr(process, "pid")
        for each in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            each.kill()


@pytest.mark.usefixtures("impatient")
def test_workers_that_are_gone_are_missed_and_then_given_up(tmp_path: Path) -> None:
    with DaskProcesses(tmp_path, 1) as (address, processes):
        said: list[str] = []
        executor = DaskExecutor(address, on_wait=said.append, patience=3)
        killer = threading.Thread(target=end_workers, args=(processes,))
        killer.start()
        with pytest.raises(ClusterError, match="has had no workers for") as caught:
            list(executor.map(wait_for, [str(tmp_path / "never")]))
        killer.join()
        assert not cause_of(caught.value).passes, "the task's retries would wait as long again"
        assert said[0].startswith(f"for Dask workers at {address}")


@pytest.mark.usefixtures("impatient")
def test_a_user_error_is_not_repeated_by_dask(tmp_path: Path) -> None:
    with DaskProcesses(tmp_path, 1, {"PYTHONPATH": os.pathsep.join(os.sys.path)}) as (address, _):  # type: ignore[attr-defined]
        with pytest.raises(UserError, match="cannot work"):
            list(DaskExecutor(address).map(refuse, [str(tmp_path / "tries")]))
        assert (tmp_path / "tries").read_text() == "tried\n"


def test_a_worker_that_cannot_be_set_up_is_told(tmp_path: Path) -> None:
    with (
        DaskProcesses(tmp_path, 1) as (address, _),
        pytest.raises(ClusterError, match=r"cannot be set up .*No space left on device"),
        cluster.cluster(address, set_up=fail_on_a_full_disk),
    ):
        pass
