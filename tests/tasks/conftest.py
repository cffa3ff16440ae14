"""Settings for tests of steps without flows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from common.settings import get_settings
from tests.prefect_home import stop_server
from tests.tasks.hosts import World


@pytest.fixture(scope="package", autouse=True)
def _home(own_home: Path) -> Iterator[None]:
    """Prefect's temporary server finds its database, and ends with the last test of this folder."""
    yield
    stop_server()


@pytest.fixture
def no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A scratch directory and agents below the test's own folder, and a Prefect server that never answers."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(tmp_path)]))
    get_settings.cache_clear()
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        yield
    get_settings.cache_clear()


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    """Put a `World` in here, so that what its hosts run ends with the test."""
    made: list[World] = []
    yield made
    for host in (host for world in made for host in world.hosts):
        if host.lives():
            with contextlib.suppress(AssertionError, psutil.Error):
                host.lose()
            host.process.kill()
