"""The whole pipeline with its root in a bucket; and on a cluster of processes that share nothing but that bucket."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from common.progress import Event, listening
from common.settings import get_settings
from competitions import registry
from flows.full_benchmark import full_benchmark
from flows.prepare import prepare
from storage import datasets
from storage.dataset import Dataset
from storage.datasets.cluster import DaskExecutor
from storage.datasets.current import require
from storage.datasets.prepared import committed_key
from tasks.wiring.requests import RunRequest
from tests.s3.fixtures import Bucket
from tests.storage.datasets.dask_processes import DaskProcesses
from tests.stores import Store


@pytest.fixture
def store(s3: Bucket) -> Store:
    return Store(s3.url)


def test_prepare_run_and_grade_in_a_bucket(store: Store, s3: Bucket, tmp_path: Path) -> None:
    ids = registry.list("demo")
    outcomes = full_benchmark(ids, RunRequest(agent="dummy", run_group="group", store=store.root))
    assert {each.result for each in outcomes} == {"done"}
    grades = pd.read_parquet(store.url("tables", "grades"))
    assert sorted(grades["competition_id"]) == ids
    assert set(grades["outcome"]) == {"valid"}
    keys = s3.names()
    assert "reports/group/report.html" in keys
    assert {f"runs/group/{name}/0/submission.csv" for name in ids} <= set(keys)
    assert not [key for key in keys if key.startswith("raw/") and key.endswith(".zip")], "not kept unless asked for"
    copies = {
        path.name for path in (tmp_path / "scratch" / "cache").iterdir() if path.is_dir() and "." not in path.name
    }
    assert len(copies) == 2 * len(ids), "public and private parts"

    again = full_benchmark(ids, RunRequest(agent="dummy", run_group="group", store=store.root))
    assert {each.result for each in again} == {"reused"}


def test_a_server_that_restarts_in_mid_prepare(store: Store, s3: Bucket) -> None:
    back: list[threading.Thread] = []

    def restart(event: Event) -> None:
        if event.state == "split" and event.total and not back:
            s3.stop()
            back.append(threading.Thread(target=s3.start))
            back[0].start()

    try:
        with listening(restart):
            (outcome,) = prepare(["digits"], store.root)
    finally:
        for thread in back:
            thread.join()
    assert back, "the server did go away"
    assert outcome.result == "done"
    assert committed_key(store, Dataset("v1", "digits")) is not None


@pytest.fixture
def nothing_shared(s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a scheduler with three workers that know the package, the bucket's server, and nothing else."""
    with DaskProcesses(tmp_path, 3, s3.environment) as (address, _):
        monkeypatch.setenv("MLEBENCH_DASK_ADDRESS", address)
        get_settings.cache_clear()
        yield address
    get_settings.cache_clear()


def test_workers_that_share_nothing_but_the_bucket(
    store: Store, nothing_shared: str, digits_zip: Path, tmp_path: Path
) -> None:
    assert get_settings().dask_address == nothing_shared
    pids = set(DaskExecutor(nothing_shared).map(_who, [0.5] * 9))
    assert len(pids) == 3, "every worker takes part"
    assert os.getpid() not in pids
    (outcome, *_) = prepare(["digits", "diabetes"], store.root)
    assert outcome.result == "done"
    expected = datasets.prepare("digits", digits_zip, tmp_path / "alone")
    url = store.prepared(require(store, Dataset("v1", "digits")))
    pd.testing.assert_frame_equal(pd.read_parquet(f"{url}/manifest.parquet"), expected)
    marker = store.read_json(f"{url}/commit.json")
    assert json.dumps(marker["files"]) == str(len(expected))


def _who(seconds: float) -> int:
    threading.Event().wait(seconds)  # long enough for each of the others to be given one
    return os.getpid()
