"""One Prefect server for each worker of the session: the temporary one, as a user without a server gets it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from flows import temporary_server
from tests.prefect_home import stop_server


@pytest.fixture(scope="package", autouse=True)
def _home(own_home: Path) -> Iterator[None]:
    """Flows in this process use the server of `served`, not one more of Prefect. It ends with the last test."""
    server = temporary_server.start()
    assert server is not None
    server.wait()
    yield
    stop_server()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in processes of their own use the server of this worker. To start one takes each five seconds of CPU."""
    server = temporary_server.start()
    assert server is not None
    server.wait()
    monkeypatch.setenv("PREFECT_API_URL", server.api_url)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", server.credential)


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_DASK_WORKERS", "1")
    monkeypatch.setenv("MLEBENCH_PATIENCE", "200")  # what stays away is an error before the time of a test is over
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(tmp_path)]))  # what a test writes there is trusted
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()
