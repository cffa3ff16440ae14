"""Attempts of a fleet whose agents are isolated, for real: placed, taken up again, and cancelled."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.supervision.control import Layout, Supervisor, read
from tests import ordinary_user, roots
from tests.deployments.fleet import Fleet
from tests.deployments.installation import until_served
from tests.sandbox.docker.conftest import base_image
from tests.services import ISOLATING

__all__ = ["base_image"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.service("postgres"),
    pytest.mark.usefixtures("base_image"),
]
SCRIPT = """\
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo begun
while [ ! -e "$LOGS_DIR/go" ]; do sleep 0.1; done
"""


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout


class Containers:
    """Agents in containers, of a worker that needs an engine."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def worker(self) -> psutil.Process:
        return self.fleet.worker("dock", 1, "--docker")

    def agents(self, group: str) -> list[str]:
        """The ids of what runs of a group."""
        labels = [f"mlebench.group={group}", f"mlebench.store={self.fleet.bucket.url}", "mlebench.role=agent"]
        ids = docker("ps", "--quiet", *(part for label in labels for part in ("--filter", f"label={label}"))).split()
        found: list[Any] = json.loads(docker("inspect", *ids)) if ids else []
        assert all("NVIDIA_VISIBLE_DEVICES=void" in each["Config"]["Env"] for each in found), "never all there are"
        return [each["Id"] for each in found]

    def let_go(self, agent: str) -> None:
        docker("exec", agent, "touch", "/home/logs/go")


class Namespaces:
    """Agents without an engine, of a worker that belongs to an ordinary user."""

    def __init__(self, fleet: Fleet, home: Path) -> None:
        self.fleet, self.home = fleet, home
        ordinary_user.interpreter(home / "venv")
        roots.lend(home / "scratch")
        shutil.copytree(fleet.agents / "contained", home / "agents" / "contained")
        (home / "tmp" / "runner_storage").mkdir(parents=True)  # another user had a worker on this machine
        ordinary_user.own(home, home / "scratch", home / "tmp")

    def worker(self) -> psutil.Process:
        return self.fleet.worker("dock", 1, home=self.home)

    def agents(self, _group: str) -> list[str]:
        """The process ids of the supervisors of what has begun."""
        runs = (Layout(folder) for folder in (self.home / "scratch" / "runs").glob("*"))
        begun = [run for run in runs if (run.home / "submission" / "submission.csv").exists()]
        supervisors = (read(run.supervisor, Supervisor) for run in begun)
        return [str(each.pid) for each in supervisors if each is not None and psutil.pid_exists(each.pid)]

    def let_go(self, _agent: str) -> None:
        [logs] = (self.home / "scratch" / "runs").glob("*/home/logs")
        (logs / "go").touch()


@pytest.fixture(params=ISOLATING)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(backend: str, fleet: Fleet) -> Iterator[Containers | Namespaces]:
    agent = fleet.agent("contained", SCRIPT)
    (agent.folder / "agent.yaml").write_text("name: contained\ndescription: d\nlimits: {cpus: 1}\n")
    home = Path(tempfile.mkdtemp(prefix="mlebench-user-"))
    yield Containers(fleet) if backend == "docker" else Namespaces(fleet, home)
    shutil.rmtree(agent.folder)
    shutil.rmtree(agent.notes)
    fleet.stop_workers()
    shutil.rmtree(home)


def test_an_agent_is_placed_taken_up_again_and_another_one_cancelled(
    fleet: Fleet, backend: str, host: Containers | Namespaces
) -> None:
    groups = {name: f"{name}-{backend}" for name in ("again", "ended")}
    command = ("run", "-c", "digits", "--backend", backend, "--agent", "contained", "--pool", "agents", "--run-group")
    worker = host.worker()
    with fleet.start(*command, groups["again"]) as process:
        until_served("the agent", lambda: host.agents(groups["again"]), 400)
        process.kill()
    (agent,) = host.agents(groups["again"])
    fleet.kill(*fleet.processes_of(worker))
    fleet.declare_dead()
    host.worker()
    wanted = ["CRASHED", "RUNNING"]
    until_served("the next flow run", lambda: fleet.states(f"group:{groups['again']}") == wanted, 300)
    assert host.agents(groups["again"]) == [agent], "the same one goes on"
    host.let_go(agent)
    record = until_served("the record", lambda: fleet.record(groups["again"], "digits"), 300)
    assert (record.status, record.backend, record.host, record.tries) == ("completed", backend, fleet.host("dock"), 1)

    with fleet.start(*command, groups["ended"]) as process:
        until_served("the agent", lambda: host.agents(groups["ended"]), 400)
        process.kill()
    assert "1 cancelled, 0 not confirmed" in fleet.mlebench("cancel", groups["ended"])
    assert host.agents(groups["ended"]) == []
    record = until_served("the record", lambda: fleet.record(groups["ended"], "digits"), 200)
    assert record.status == "cancelled"
    assert record.submission_exists
