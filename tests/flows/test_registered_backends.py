"""A backend that another distribution registers works from the command line to the report, without a change here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.tables import read_table
from tests.agents import write_agent
from tests.prefect_home import make_home
from tests.stores import Store

ROOT = Path(__file__).parents[2]
MODULE = """
from sandbox.backend import Capabilities
from sandbox.process.backend import ProcessBackend


class Backend(ProcessBackend):
    name = "elsewhere"
    capabilities = Capabilities(isolates=True, networks=("gateway",), supervised=True)
    policy = "gateway"

    @classmethod
    def create(cls, isolation, allowed_hosts=(), scratch=None):
        return cls(allow_untrusted=True)

    @classmethod
    def conditions(cls, isolation):
        return {"backend": cls.name, "network": isolation.network}
"""
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with an installed distribution that registers a backend."""
    information = tmp_path / "site" / "elsewhere-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[mlebench.backends]\nelsewhere = elsewhere_backend:Backend\n")
    (tmp_path / "site" / "elsewhere_backend.py").write_text(MODULE)
    return tmp_path / "site"


def test_from_the_command_line_to_the_report(
    tmp_path: Path, prefect_database: Path, installed: Path, store: Store
) -> None:
    agent = write_agent(
        tmp_path / "stranger", 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"', trusted=False
    )
    make_home(tmp_path / "prefect", prefect_database)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]),
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "MLEBENCH_SCRATCH": str(tmp_path / "scratch"),
    }

    def mlebench(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "flows.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, check=False)

    run = ["run", "-c", "digits", "--agent", str(agent), "--run-group", "group", "--store", store.root]
    done = mlebench(*run, "--backend", "elsewhere")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = read_table(store, "runs").to_dict("records")
    assert (row["backend"], row["network"], row["status"]) == ("elsewhere", "gateway", "completed")
    page = store.local("reports", "group", "report.html")
    assert page is not None
    assert "elsewhere" in page.read_text()
    other = mlebench(*run, "--backend", "process", "--allow-untrusted")
    assert "backend was elsewhere, is now process" in other.stdout + other.stderr
    refused = mlebench(*run[:-4], "--store", store.root, "--backend", "elsewhere", "--network", "open")
    assert refused.returncode != 0
    assert "the elsewhere backend has no network policy 'open'" in refused.stderr
