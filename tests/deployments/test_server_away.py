"""Prefect's server goes away under running flows and comes back: nothing is lost, and nothing happens twice.

Here it is away for about a minute. `test_limits.py` shows that the limits allow ten minutes, and an hour.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.agents import noting, write_agent
from tests.deployments.installation import ROOT, Running, until_served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def waiting_agent(running: Running, folder: Path, name: str) -> Path:
    """An agent that notes its starts in `folder`, and waits for a file `go` there. The installation trusts it."""
    wait = f"while [ ! -e {folder}/go ]; do sleep 0.1; done\n"
    return write_agent(running.folder.parent / name, noting(folder, wait))


def flow_runs(running: Running, group: str) -> list[Any]:
    """The top-level flow runs that were made for a run group."""
    found = running.api("/flow_runs/filter", {"flow_runs": {"parent_task_run_id": {"is_null_": True}}, "limit": 200})
    return [run for run in found if group in json.dumps(run["parameters"])]


def test_a_deployed_flow_and_a_command_outlive_an_absence_of_the_server(running: Running, tmp_path: Path) -> None:
    deployed, here = tmp_path / "deployed", tmp_path / "here"
    for folder in (deployed, here):
        folder.mkdir()
    agent = waiting_agent(running, deployed, "waits-deployed")
    run = running.trigger(
        "benchmark/full-benchmark", competition_ids=["digits"], agent=str(agent), run_group="server-away"
    )
    said = here / "err"
    with said.open("wb") as err:
        command = ["run", "-c", "digits", "--agent", str(waiting_agent(running, here, "waits-here"))]
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *command, "--run-group", "cli-away"],
            env={**running.env, **running.installation.environment()},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    try:
        until_served("both agents", lambda: all((each / "starts-digits").exists() for each in (deployed, here)), 300)
        running.installation.processes.stop("server")
        for folder in (deployed, here):
            (folder / "go").touch()
        # The agents end, are harvested and graded without a server; the flows then have to tell one how they ended.
        grade = running.store / "runs/server-away/digits/0/grade.json"
        until_served("the grade", grade.exists, 200)
        until_served("tables", lambda: list(running.store.glob("tables/grades/run_group=server-away/*.parquet")), 200)
        until_served("a word", lambda: "for the Prefect server" in said.read_text() or process.poll() is not None, 200)
        port = running.installation.port
        assert running.make("up", f"PORT={port}", "DASK_WORKERS=1").returncode == 0
        out, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    state = running.ended(run)
    assert state["type"] == "COMPLETED", state["message"]
    assert (deployed / "starts-digits").read_text() == "start\n"
    assert running.flow_run(run)["run_count"] == 1
    assert [each["id"] for each in flow_runs(running, "server-away")] == [run], "no second flow has started"
    assert "worker" in running.installation.processes.running(), "the worker has waited too"
    assert running.api("/deployments/name/benchmark/full-benchmark")["global_concurrency_limit"] is None

    assert process.returncode == 0, out + said.read_text()
    assert (here / "starts-digits").read_text() == "start\n"
    grades = pd.read_parquet(running.store / "tables" / "grades" / "run_group=cli-away")
    assert list(grades["outcome"]) == ["valid"]
    (top,) = flow_runs(running, "cli-away")
    assert top["state_type"] == "COMPLETED"
