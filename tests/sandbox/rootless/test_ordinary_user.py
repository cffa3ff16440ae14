"""The whole command as an ordinary user, without a daemon: from an untrusted agent to a grade."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.definitions import BASE_IMAGE
from storage.tables import read_table
from tests import roots
from tests.agents import write_agent
from tests.stores import Store

ROOT = Path(__file__).parents[3]
NOBODY = 65534
pytestmark = [pytest.mark.service("rootless"), pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with an interpreter that has our packages, of an ordinary user: this one, if that is not root."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-user-"))
    roots.lend(folder / "scratch")
    make_interpreter(folder / "venv")
    if not os.getuid():
        for path in (folder, folder / "scratch"):
            os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def make_interpreter(folder: Path) -> None:
    """An environment that an ordinary user can use even if our own interpreter is in the home of root."""
    system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    interpreter = sys.executable if os.getuid() or not system.exists() else system
    subprocess.run([interpreter, "-m", "venv", "--without-pip", folder], check=True)
    # Python 3.11 before 3.11.3 needs a package of that name, which our interpreter does not.
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "ours.pth").write_text(
        "\n".join([*(path for path in sys.path if path.endswith("-packages")), str(ROOT)])
    )
    (packages / "async_timeout.py").write_text("from asyncio import timeout\n")


def mlebench(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    user: dict[str, Any] = {} if os.getuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PREFECT_HOME": str(home / "prefect"),
        "MLEBENCH_SCRATCH": str(home / "scratch"),
        "MLEBENCH_STORE": str(home / "store"),
        "MLEBENCH_HOST_NAME": home.name,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [str(home / "venv" / "bin" / "python"), "-m", "flows.cli", *arguments]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False, **user)


def test_an_untrusted_agent_from_the_command_to_the_grade(home: Path) -> None:
    agent = write_agent(
        home / "stranger",
        'id -u; cp "$SAMPLE_SUBMISSION" submission/submission.csv; sh "$VALIDATE_SCRIPT" submission/submission.csv',
        trusted=False,
    )
    done = mlebench(
        home, "run", "-c", "diabetes", "--agent", str(agent), "--backend", "rootless", "--run-group", "mine"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store(str(home / "store"))
    [run] = read_table(store, "runs").to_dict("records")
    assert (run["status"], run["backend"], run["network"]) == ("completed", "rootless", "gateway")
    assert run["enforcement"].startswith("memory: "), "what holds is recorded"
    assert (run["image"], run["validation_calls"]) == (BASE_IMAGE, 1)
    log = (store.local("runs", "mine", "diabetes", 0) / "logs" / "agent.log").read_text().splitlines()
    assert (log[0], "valid" in log[1]) == ("1000", True)
    assert list(read_table(store, "grades")["outcome"]) == ["valid"]
