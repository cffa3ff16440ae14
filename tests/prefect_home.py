"""Homes of Prefect whose database exists already: to make one takes a server six seconds of CPU time."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import starting
from flows import temporary_server


@pytest.fixture(scope="session")
def prefect_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database, made once for all workers of the session."""
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prefect-home"
    home.mkdir(exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / ".done").exists():
            command = starting.command("prefect", "server", "database", "upgrade", "-y")
            subprocess.run(command, env={**os.environ, "PREFECT_HOME": str(home)}, check=True, capture_output=True)
            (home / ".done").touch()
    return home / "prefect.db"


def make_home(folder: Path, database: Path) -> Path:
    """Make `folder` a home of Prefect that no server has used yet; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(database, folder / "prefect.db")
    return folder


@pytest.fixture(scope="session")
def own_home(prefect_database: Path) -> Path:
    """The home of this worker, whose server was not started yet or has the database that it made."""
    home = Path(os.environ["PREFECT_HOME"])
    return home if (home / "prefect.db").exists() else make_home(home, prefect_database)


def stop_server() -> None:
    """End the temporary servers of this process, if it has any: an idle one takes four percent of a core."""
    temporary_server.stop()
    if server := sys.modules.get("prefect.server.api.server"):
        for each in list(server.SubprocessASGIServer._instances.values()):
            each.stop()
