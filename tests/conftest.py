"""What tests share: services that may be missing, the three small downloads, a Prefect server of the session's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from competitions import registry
from deployments import s3_server
from tests.prepared import PreparedCompetitions

pytest_plugins = ["tests.kaggle_server.fixtures", "tests.s3.fixtures"]

REQUIRED = os.environ.get("MLEBENCH_REQUIRE_SERVICES") == "1"


def _chromium() -> str | None:
    return None if shutil.which("chromium") else "chromium is not installed"


def _docker() -> str | None:
    if shutil.which("docker") is None:
        return "docker is not installed"
    answer = subprocess.run(["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, check=False)
    return None if answer.returncode == 0 else "no Docker engine answers"


# name -> function that says why the service is missing, None if it is there
SERVICES: dict[str, Callable[[], str | None]] = {"docker": _docker, "chromium": _chromium, "s3": s3_server.missing}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose service is missing, or fail them where services are required."""
    for marker in item.iter_markers("service"):
        reason = SERVICES[marker.args[0]]()
        if reason and REQUIRED:
            pytest.fail(f"{reason}, and MLEBENCH_REQUIRE_SERVICES=1", pytrace=False)
        if reason:
            pytest.skip(reason)


@pytest.fixture(autouse=True, scope="session")
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the user's settings reaches a test, and no test leaves anything in the user's home."""
    home = tmp_path_factory.mktemp("home")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("MLEBENCH_", "PREFECT_", "KAGGLE_", "AWS_"))
    }
    for name in kept:
        if name != "MLEBENCH_REQUIRE_SERVICES":
            del os.environ[name]
    os.environ["PREFECT_HOME"] = str(home / "prefect")
    os.environ["MLEBENCH_SCRATCH"] = str(home / "scratch")
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "180"
    os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
    yield
    for name in ("PREFECT_HOME", "MLEBENCH_SCRATCH"):
        os.environ.pop(name, None)
    os.environ.update(kept)


@pytest.fixture
def digits_zip(tmp_path: Path) -> Path:
    """The download of the competition digits."""
    path = tmp_path / "digits.zip"
    path.write_bytes(registry.get("digits").bundle())
    return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCompetitions:
    """Every competition prepared from its miniature: by id, on demand, once for all workers of the session."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared-competitions"
    root.mkdir(exist_ok=True)
    return PreparedCompetitions(root)
