"""Attempts of a fleet in containers, on a real engine: placed, taken up again, and cancelled."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.deployments.fleet import Fleet
from tests.deployments.installation import until_served
from tests.sandbox.docker.conftest import base_image

__all__ = ["base_image"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.service("docker"),
    pytest.mark.service("postgres"),
    pytest.mark.usefixtures("base_image"),
]
SCRIPT = """\
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo begun
while [ ! -e "$LOGS_DIR/go" ]; do sleep 0.1; done
"""
COMMAND = ("run", "-c", "digits", "--backend", "docker", "--agent", "contained", "--pool", "agents")


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout


def agents_of(fleet: Fleet, group: str) -> list[Any]:
    """What the engine knows of the containers of a group's agents."""
    labels = [f"mlebench.group={group}", f"mlebench.store={fleet.bucket.url}", "mlebench.role=agent"]
    ids = docker("ps", "--quiet", *(part for label in labels for part in ("--filter", f"label={label}"))).split()
    found: list[Any] = json.loads(docker("inspect", *ids)) if ids else []
    return found


def test_a_container_is_placed_taken_up_again_and_another_one_cancelled(fleet: Fleet) -> None:
    agent = fleet.agent("contained", SCRIPT)
    (agent.folder / "agent.yaml").write_text("name: contained\ndescription: d\nlimits: {cpus: 1}\n")
    worker = fleet.worker("dock", 1, "--docker")
    with fleet.start(*COMMAND, "--run-group", "boxes") as process:
        until_served("the container", lambda: agents_of(fleet, "boxes"), 400)
        process.kill()
    (container,) = agents_of(fleet, "boxes")
    assert "NVIDIA_VISIBLE_DEVICES=void" in container["Config"]["Env"], "never all that the machine has"
    fleet.kill(*fleet.processes_of(worker))
    fleet.declare_dead()
    fleet.worker("dock", 1, "--docker")
    wanted = ["CRASHED", "RUNNING"]
    until_served("the next flow run", lambda: fleet.states("group:boxes") == wanted, 300)
    assert [each["Id"] for each in agents_of(fleet, "boxes")] == [container["Id"]], "the same one goes on"
    docker("exec", container["Id"], "touch", "/home/logs/go")
    record = until_served("the record", lambda: fleet.record("boxes", "digits"), 300)
    assert (record.status, record.backend, record.host, record.tries) == ("completed", "docker", fleet.host("dock"), 1)

    with fleet.start(*COMMAND, "--run-group", "ended") as process:
        until_served("the container", lambda: agents_of(fleet, "ended"), 400)
        process.kill()
    assert "1 cancelled, 0 not confirmed" in fleet.mlebench("cancel", "ended")
    assert agents_of(fleet, "ended") == []
    record = until_served("the record", lambda: fleet.record("ended", "digits"), 200)
    assert record.status == "cancelled"
    assert record.submission_exists
