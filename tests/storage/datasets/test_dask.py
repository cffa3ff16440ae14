"""Materialising on a real Dask cluster: the same result, and a worker that dies costs nothing but time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions.errors import DownloadError
from storage.datasets import prepare
from storage.datasets.cluster import ClusterError, DaskExecutor, cluster, connect
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from tests.waiting import until


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(workers=2) as scheduler:
        yield scheduler


def test_dask_gives_what_one_process_gives(address: str, digits_zip: Path, tmp_path: Path) -> None:
    alone = prepare("digits", digits_zip, tmp_path / "alone")
    together = materialise(Job("digits", str(digits_zip), str(tmp_path / "dask")), executor=DaskExecutor(address))
    pd.testing.assert_frame_equal(alone, together.to_pandas())


def test_an_error_on_a_worker_arrives_as_it_is(address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="does not exist"):
        materialise(Job("digits", str(tmp_path / "no.zip"), str(tmp_path / "out")), executor=DaskExecutor(address))


def _die_once(marker: str) -> str:
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def test_a_dying_worker_is_replaced(address: str, tmp_path: Path) -> None:
    assert list(DaskExecutor(address).map(_die_once, [str(tmp_path / "marker")])) == ["survived"]


def _in_memory(dask_scheduler: Any) -> int:
    return sum(bool(task.who_has) for task in dask_scheduler.tasks.values())


def test_workers_keep_no_results(address: str) -> None:
    with connect(address) as client:
        for _ in DaskExecutor(address).map(str, range(30)):
            last = client.run_on_scheduler(_in_memory)
        until(lambda: client.run_on_scheduler(_in_memory) == 0)
    assert last < 30, "a million rows would stay until the last chunk"


def _set_up() -> None:
    name = "MLEBENCH_TEST_SET_UP"
    os.environ[name] = f"{int(os.environ.get(name, 0)) + 1}"


def _times_set_up(_number: int) -> tuple[int, str]:
    return os.getpid(), os.environ["MLEBENCH_TEST_SET_UP"]


def test_every_worker_is_set_up_once(address: str) -> None:
    found = list(DaskExecutor(address, set_up=_set_up).map(_times_set_up, list(range(20))))
    assert {times for _, times in found} == {"1"}
    assert os.getpid() not in {pid for pid, _ in found}
    assert "MLEBENCH_TEST_SET_UP" not in os.environ


def test_an_unreachable_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.patience._seconds", 1.0)
    with (
        pytest.raises(ClusterError, match="no Dask scheduler answers at tcp://127"),
        cluster("tcp://127.0.0.1:1"),
    ):
        pass
