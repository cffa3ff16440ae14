"""A worker's machine dies in mid-run: nothing that was finished is done again, and nothing stays taken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from tests.agents import noting, write_agent
from tests.deployments.installation import ROOT, Running, installation, until_served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NO_ENGINE = {"DOCKER_HOST": "tcp://127.0.0.1:1"}  # `doctor --fix` would end what others here have left


@pytest.fixture(scope="module")
def running(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with installation(tmp_path_factory.mktemp("recovery") / "up", prefect_database) as started:
        yield started


def slow_agent(notes: Path) -> Path:
    """An agent that notes its starts in `notes`, by competition; on diabetes it then waits for a file `go` there."""
    then = f"[ $COMPETITION_ID = diabetes ] || exit 0\nwhile [ ! -e {notes}/go ]; do sleep 0.1; done\n"
    return write_agent(notes / "slow", noting(notes, then))


def doctor(running: Running, *options: str) -> dict[str, list[str]]:
    """What doctor says of leftovers: its lines by what they are about."""
    result = running.mlebench("doctor", "--split", "demo", *options, **NO_ENGINE)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    return {
        about: [line for line in lines if line.partition(" ")[2].startswith(about)] for about in ("flow runs", "slots")
    }


def unfinished(running: Running) -> list[str]:
    """Names of flow runs that have not ended, but for those of schedules."""
    wanted = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING"]}}}}
    found = running.api("/flow_runs/filter", wanted)
    return [run["name"] for run in found if "auto-scheduled" not in run["tags"]]


def test_a_killed_worker_loses_nothing_that_was_finished(running: Running) -> None:
    notes = running.folder.parent
    agent = slow_agent(notes)
    run = running.trigger(
        "benchmark/full-benchmark", competition_ids=["digits", "diabetes"], agent=str(agent), run_group="killed"
    )
    grade, started = running.store / "runs/killed/digits/0/grade.json", notes / "starts-diabetes"
    until_served("one grade and one agent that waits", lambda: grade.exists() and started.exists(), 400)
    prepared = {path: path.stat().st_mtime_ns for path in running.store.glob("prepared/v1/*/*/commit.json")}
    assert len(prepared) == 2

    # The machine dies, as far as Prefect can tell: the worker and its flow run's process at one blow.
    worker = running.installation.processes.running()["worker"]
    pid = int(running.flow_run(run)["infrastructure_pid"])
    for process in (worker, psutil.Process(pid)):
        process.kill()
    psutil.wait_procs([worker], timeout=30)
    assert running.flow_run(run)["state_type"] == "RUNNING", "nobody told the server"
    assert doctor(running)["flow runs"] == ["ok flow runs all running flow runs have a process"], "too early to tell"
    (line,) = doctor(running, "--silent-for", "0")["flow runs"]
    assert line.startswith("warn flow runs 'slow on 2 competitions, group killed' has no process"), line
    assert line.endswith("-> mlebench doctor --fix")

    running.up()  # as an operator or a supervisor would; the automation does the rest
    # The recovery does not wait for another heartbeat: there was no outage of the server in which one was lost.
    recover = running.api("/deployments/name/recovery/recover")["id"]
    running.api(f"/deployments/{recover}", {"parameters": {"confirm_seconds": 1}}, "PATCH")
    until_served("the run on the new worker", lambda: running.flow_run(run)["run_count"] >= 2, 400)
    (notes / "go").touch()
    state = running.ended(run)
    assert state["type"] == "COMPLETED", running.log()
    for name in ("digits", "diabetes"):
        assert (notes / f"starts-{name}").read_text() == "start\n", name
    assert {path: path.stat().st_mtime_ns for path in prepared} == prepared
    grades = pd.read_parquet(running.store / "tables" / "grades")
    assert sorted(grades["competition_id"]) == ["diabetes", "digits"]

    (recovered,) = running.api("/artifacts/filter", {"artifacts": {"key": {"any_": ["recovered"]}}})
    assert "| resubmitted |" in recovered["data"]
    # The old process's flow runs have ended too, and so does the `recovery` that their crash has started.
    until_served("the end of all that was started", lambda: not unfinished(running))
    assert running.api("/v2/concurrency_limits/filter", {}) == [], "queues limit flow runs, without leases to renew"


def test_doctor_resolves_what_was_left(running: Running) -> None:
    running.installation.processes.stop("worker")
    # What a worker does before it starts a process; then its machine is gone.
    run = running.trigger("preparation/prepare", split="demo", competition_ids=["digits"])
    for state in ("PENDING", "RUNNING"):
        running.api(f"/flow_runs/{run}/set_state", {"state": {"type": state}})
    # And what a server does that is killed: it forgets who held a slot, but not that it was taken.
    # A deployment has slots if somebody has set a limit in the UI.
    grade = running.api("/deployments/name/grading/grade")["id"]
    running.api(f"/deployments/{grade}", {"concurrency_limit": 2}, "PATCH")
    limit = running.api("/deployments/name/grading/grade")["global_concurrency_limit"]["id"]
    running.api(f"/v2/concurrency_limits/{limit}", {"active_slots": 2}, "PATCH")

    found = doctor(running, "--silent-for", "0")
    assert [line[:4] for line in (*found["flow runs"], *found["slots"])] == ["warn", "warn"]
    assert "grade: 2 taken, 0 in use" in found["slots"][0]
    fixed = doctor(running, "--fix", "--silent-for", "0")
    assert fixed["flow runs"][0].endswith("marked as crashed, submitted again")
    assert fixed["slots"][0].endswith("freed")
    assert doctor(running, "--silent-for", "0") == {
        "flow runs": ["ok flow runs all running flow runs have a process"],
        "slots": ["ok slots all taken slots are in use"],
    }
    assert running.api(f"/v2/concurrency_limits/{limit}")["active_slots"] == 0

    running.up()
    running.require_completed(run)


def test_a_flow_run_that_ends_as_its_worker_is_killed_is_submitted_again(running: Running) -> None:
    """It begins while its worker dies: nobody reads its output any more, which Prefect's own log cannot endure."""
    running.installation.processes.stop("worker")
    run = running.trigger("preparation/prepare", split="demo", competition_ids=["digits"])
    running.api(f"/flow_runs/{run}/set_state", {"state": {"type": "PENDING"}})
    reader, writer = os.pipe()
    os.close(reader)
    env = running.env | running.installation.environment() | {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}
    command = [sys.executable, "-m", "prefect.engine", run]  # as the worker starts it
    subprocess.run(command, env=env, cwd=ROOT, stdout=writer, stderr=writer, timeout=240, check=False)
    os.close(writer)
    state = running.flow_run(run)["state"]
    assert (state["type"], state["message"]) == ("CRASHED", "Execution was aborted by Python system exit call.")

    running.up()  # Prefect has told the automation of the crash
    until_served("the run on the new worker", lambda: running.flow_run(run)["run_count"] >= 2, 400)
    running.require_completed(run)
