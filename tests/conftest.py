"""What tests share: services that may be missing, the three small downloads, a Prefect server of the session's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from competitions import registry

REQUIRED = os.environ.get("MLEBENCH_REQUIRE_SERVICES") == "1"


def _chromium() -> str | None:
    return None if shutil.which("chromium") else "chromium is not installed"


# name -> function that says why the service is missing, None if it is there
SERVICES: dict[str, Callable[[], str | None]] = {"chromium": _chromium}


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
