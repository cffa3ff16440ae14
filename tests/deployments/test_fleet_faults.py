"""Commands, servers and workers that die or are away: an attempt is made once, with a real server, S3 and signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.deployments.fleet import WAITING, Fleet, until_states
from tests.deployments.installation import until_served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.service("postgres")]


def test_orchestrators_of_a_group_hand_out_each_attempt_once_and_find_it_again(fleet: Fleet) -> None:
    agent = fleet.agent("shared", WAITING)
    fleet.worker("ida", 1)
    command = ("run", "-c", "digits", "-c", "diabetes", "--agent", "shared", "--pool", "agents", "--run-group", "both")
    with fleet.start(*command) as first, fleet.start(*command) as second:
        until_served("an agent", lambda: len(agent.processes()) == 2, 400)
        until_served("both attempts", lambda: len(fleet.flow_runs("group:both")) == 2, 200)
        assert "RUNNING" in fleet.states("group:both")
        assert "SCHEDULED" in fleet.states("group:both"), "what waits for a slot does not run"
        first.kill()
        second.kill()
    assert len(agent.processes()) == 2, "attempts go on without their orchestrators"
    with fleet.start(*command) as third:
        agent.let_go()
        output, _ = third.communicate(timeout=500)
    assert third.returncode == 0, output
    assert fleet.states("group:both") == ["COMPLETED", "COMPLETED"]
    assert sorted(agent.starts()) == ["diabetes-0", "digits-0"]


def test_an_attempt_that_is_cancelled_in_the_ui_ends_even_without_its_worker(fleet: Fleet) -> None:
    agent = fleet.agent("unwatched", WAITING)
    worker = fleet.worker("jan", 1)
    with fleet.detached(agent, "ui"):
        pass
    fleet.kill(worker)  # its flow run goes on, and nobody else would end it
    (run,) = fleet.flow_runs("group:ui")
    fleet.api(f"/flow_runs/{run['id']}/set_state", {"state": {"type": "CANCELLING"}})  # as the button does
    until_served("the agent's end", lambda: agent.processes() == [], 200)
    until_states(fleet, "ui", ["CANCELLED"])
    record = until_served("the record", lambda: fleet.record("ui", "digits"))
    assert record.status == "cancelled"
    assert record.submission_exists


def test_attempts_outlive_an_absent_server(fleet: Fleet) -> None:
    agent = fleet.agent("alone", WAITING)
    fleet.worker("kurt", 1)
    command = ("run", "-c", "digits", "--agent", "alone", "--pool", "agents", "--run-group", "away")
    with fleet.start(*command) as process:
        until_served("the agent", lambda: len(agent.processes()) == 2, 400)
        fleet.processes.stop("server")
        agent.let_go()
        until_served("the record, without a server", lambda: fleet.record("away", "digits"), 200)
        fleet.start_server()
        output, _ = process.communicate(timeout=500)
    assert process.returncode == 0, output
    assert fleet.states("group:away")[-1] == "COMPLETED"
    assert agent.starts() == ["digits-0"]


def test_the_server_marks_a_silent_attempt_as_crashed(fleet: Fleet) -> None:
    """With a silence of ten seconds instead of three heartbeats."""
    script = """
import sys
from uuid import UUID
from flows.fleet.registration import register, watch_silence
from prefect import get_client
from prefect.states import Running
watch_silence("silent", 10)
request = {"agent": "dummy", "run_group": "g", "store": "/s"}
attempt = {"request": request, "competition_id": "digits", "seed": 0, "key": ""}
deployment, _ = register("silent")
with get_client(sync_client=True) as client:
    run = client.create_flow_run_from_deployment(deployment, parameters={"attempt": attempt}, state=Running())
print(run.id, deployment)
"""
    made = subprocess.run(
        [sys.executable, "-c", script], env=fleet.env, capture_output=True, text=True, check=False, timeout=120
    )
    assert made.returncode == 0, made.stderr
    run, deployment = made.stdout.split()
    fleet.api("/events", [_heartbeat(run, deployment)])
    state = until_served(
        "the crash", lambda: (each := fleet.api(f"/flow_runs/{run}")["state"])["type"] == "CRASHED" and each
    )
    assert state["message"].startswith("Fallen silent")


def _heartbeat(run: str, deployment: str) -> dict[str, object]:
    from datetime import UTC, datetime
    from uuid import uuid4

    return {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": "prefect.flow-run.heartbeat",
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
        "related": [{"prefect.resource.id": f"prefect.deployment.{deployment}", "prefect.resource.role": "deployment"}],
        "payload": {},
    }
