"""A finished run whose ledger is signed, to do harm to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from tasks.wiring.requests import RunRequest
from tests.stores import Store

SCRIPT = """#!/bin/bash
sh "$VALIDATE_SCRIPT" "$SAMPLE_SUBMISSION"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo 'x = 1' > "$CODE_DIR/main.py"
"""


@pytest.fixture(scope="module")
def finished_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run whose ledger is signed."""
    from flows.full_benchmark import full_benchmark

    agents = tmp_path_factory.mktemp("agents")
    (agents / "asks").mkdir()
    (agents / "asks" / "agent.yaml").write_text("name: asks\ndescription: validates once\ntrusted: true\n")
    (agents / "asks" / "start.sh").write_text(SCRIPT)
    root = tmp_path_factory.mktemp("ledgers") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(agents)]))
        patch.setenv("MLEBENCH_SCRATCH", str(agents / "scratch"))
        patch.setenv("MLEBENCH_LEDGER_KEY", "the operator's")
        get_settings.cache_clear()
        full_benchmark(["diabetes"], RunRequest(agent=str(agents / "asks"), run_group="g", store=str(root)))
    return root


@pytest.fixture
def run(finished_store: Path, tmp_path: Path) -> Path:
    """A copy of the run's folder to do harm to, in a store of its own."""
    shutil.copytree(finished_store, tmp_path / "store")
    return tmp_path / "store" / "runs" / "g" / "diabetes" / "0"


@pytest.fixture
def verify(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def verify(group: str = "g") -> tuple[int, str]:
        capfd.readouterr()
        code = main(["verify", group, "--store", str(tmp_path / "store")])
        return code, "".join(capfd.readouterr())

    return verify


def edit(run: Path, **fields: object) -> None:
    path = run / "run.json"
    path.write_bytes(Store.json_bytes({**json.loads(path.read_text()), **fields}))


def signed(monkeypatch: pytest.MonkeyPatch, key: str = "the operator's") -> None:
    monkeypatch.setenv("MLEBENCH_LEDGER_KEY", key)
    get_settings.cache_clear()
