"""What depends on workers: flow runs outlive theirs, none is missed, and a user's files do not hide our packages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.agents import noting, write_agent
from tests.deployments.installation import Running, installation, until_served
from tests.sandbox.docker.conftest import base_image

__all__ = ["base_image"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NO_ENGINE = {"DOCKER_HOST": "tcp://127.0.0.1:1"}


@pytest.fixture(scope="module")
def running(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An installation that is started, and whose flow runs begin, where a user has files with our packages' names."""
    here = tmp_path_factory.mktemp("user")
    for name in ("competitions", "flows", "grading", "storage"):
        (here / name).mkdir()
        (here / name / "__init__.py").write_text("raise SystemExit('the file of a user')\n")
    for name in ("common", "sandbox", "tasks"):
        (here / f"{name}.py").write_text("raise SystemExit('the file of a user')\n")
    # A worker that is stopped counts as offline after three of its heartbeats.
    with installation(here / "up", prefect_database, PREFECT_WORKER_HEARTBEAT_SECONDS="10") as started:
        template = started.api("/work_pools/mlebench")["base_job_template"]
        template["job_configuration"]["working_dir"] = str(here)  # as the form of a pool sets it
        started.api("/work_pools/mlebench", {"base_job_template": template}, "PATCH")
        started.installation.processes.stop("worker", "dask-workers")
        start_workers(started)
        yield started


def waiting_agent(running: Running, name: str) -> tuple[Path, Path]:
    """An agent that waits for a file `go`, and the file that it writes when it starts."""
    notes = running.folder.parent / f"notes-{name}"
    notes.mkdir()
    agent = running.folder.parent / name
    write_agent(agent, noting(notes, f"while [ ! -e {notes}/go ]; do sleep 0.1; done\n"))
    return agent, notes / "starts-digits"


def start_workers(running: Running) -> psutil.Process:
    """Start the worker and those of Dask from the user's folder, unless they run; returns the worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(running.folder.parent)
        for name, value in running.env.items():
            patch.setenv(name, value)
        patch.setenv("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")  # as it is for users; the tests' own is none
        for name, start in (
            ("dask-workers", running.installation._start_dask_workers),
            ("worker", running.installation.start_worker),
        ):
            if name not in running.installation.processes.running():
                start()
    return running.installation.processes.running()["worker"]


def test_a_flow_run_outlives_its_worker(running: Running) -> None:
    worker = start_workers(running)
    agent, started = waiting_agent(running, "outlives")
    (agent / "start.sh").write_text(
        (agent / "start.sh").read_text().replace("while", 'sh "$VALIDATE_SCRIPT"\nwhile')  # asks before it waits
    )
    run = running.trigger(
        "benchmark/full-benchmark", competition_ids=["digits"], agent=str(agent), run_group="outlives"
    )
    until_served("the agent", started.exists, 400)
    worker.kill()
    psutil.wait_procs([worker], timeout=30)
    (started.parent / "go").touch()

    state = running.ended(run)
    assert state["type"] == "COMPLETED", state
    assert running.flow_run(run)["run_count"] == 1, "the same process went on"
    log = (running.folder / "s" / "logs" / f"{run}.log").read_text()
    assert "Completed" in log
    told = [line.partition("digits seed 0: ")[2] for line in running.log_of(run, "graded: score 0.075").splitlines()]
    story = [
        "agent started on ",
        "validated: the submission is valid",
        "ended: completed after ",
        "graded: score 0.075",
    ]
    found = [next((number for number, line in enumerate(told) if line.startswith(each)), -1) for each in story]
    assert found == sorted(found), told
    assert -1 not in found, told


def agents_of(running: Running, group: str) -> list[str]:
    """The agents of a group that run: processes in the work folders of the installation, and containers."""
    scratch = str(running.folder / "s/runs")
    found = [each.name() for each in psutil.process_iter(["cmdline"]) if scratch in str(each.info)]
    if shutil.which("docker"):
        labels = [f"mlebench.group={group}", f"mlebench.store=file://{running.store}", "mlebench.role=agent"]
        command = ["docker", "ps", "--quiet", *(part for label in labels for part in ("--filter", f"label={label}"))]
        found += subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return found


@pytest.mark.parametrize("backend", ["process", pytest.param("docker", marks=pytest.mark.service("docker"))])
def test_cancelling_in_the_ui_ends_the_agents(running: Running, backend: str, request: pytest.FixtureRequest) -> None:
    if backend == "docker":
        request.getfixturevalue("base_image")
    start_workers(running)
    group = f"cancelled-{backend}"
    agent = write_agent(running.folder.parent / group, "sleep 3600\n")
    execution = {"backend": backend}
    parameters = {"competition_ids": ["digits"], "agent": str(agent), "seeds": 6, "execution": execution}
    run = running.trigger("benchmark/full-benchmark", **parameters, run_group=group)
    until_served("the agents", lambda: agents_of(running, group), 400)
    running.api(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})  # as the button does
    until_served("the end of the flow run", lambda: running.flow_run(run)["state_type"] == "CANCELLED", 120)
    until_served("the end of the agents", lambda: not agents_of(running, group), 60)


def test_doctor_says_that_no_worker_polls(running: Running) -> None:
    running.installation.processes.stop("worker")
    until_served(
        "the worker's status",
        lambda: "ONLINE" not in {each["status"] for each in running.api("/work_pools/mlebench/workers/filter", {})},
        300,
    )
    said = running.mlebench("doctor", "--split", "demo", **NO_ENGINE)
    assert said.returncode == 1
    assert "no worker polls work pool mlebench" in said.stdout
    assert "make up" in said.stdout
    start_workers(running)
    said = running.mlebench("doctor", "--split", "demo", **NO_ENGINE)
    assert ["ok", "workers"] in [line.split()[:2] for line in said.stdout.splitlines()]
    said = running.mlebench("doctor", "--split", "demo", MLEBENCH_AGENT_POOL="agents", **NO_ENGINE)
    assert "there is no work pool agents -> mlebench worker --pool agents" in said.stdout
