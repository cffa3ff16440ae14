"""Whatever dies, an attempt is made once, or begun anew and counted: with a real server, S3, workers and signals."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.deployments.fleet import ASKING, COUNTING, WAITING, Fleet, ScriptedAgent
from tests.deployments.installation import until_served
from tests.processes import command_of, living

pytestmark = [pytest.mark.timeout(900), pytest.mark.service("postgres")]


@contextmanager
def detached(fleet: Fleet, agent: ScriptedAgent, group: str) -> Iterator[subprocess.Popen[str]]:
    """`mlebench run` of one attempt, until its agent runs; the command is killed after the block."""
    command = ("run", "-c", "digits", "--agent", agent.folder.name, "--pool", "agents", "--run-group", group)
    with fleet.start(*command) as process:
        try:
            until_served("the agent", lambda: len(agent.processes()) == 2, 400)
            yield process
        finally:
            process.kill()


def ended(fleet: Fleet, group: str, *states: str) -> None:
    until_served(f"{states}", lambda: fleet.states(f"group:{group}") == sorted(states), 300)


def test_the_next_flow_run_on_a_host_finds_the_agent_and_its_services_go_on(fleet: Fleet) -> None:
    agent = fleet.agent("asking", ASKING)
    worker = fleet.worker("emil", 1)
    with detached(fleet, agent, "lost"):
        fleet.worker("fritz", 1)  # another host is there, and leaves the attempt to the one that has the agent
        (agent.notes / "ask").touch()
        until_served("the first answer", lambda: len(agent.note("answers")) == 1)
    # Nobody hands out any more. The worker and its flow runs are killed, but not the agent and its supervisor.
    fleet.kill(*fleet.processes_of(worker))
    assert len(agent.processes()) == 2, "the agent outlives its orchestrator"
    fleet.worker("emil", 1)
    fleet.declare_dead()
    ended(fleet, "lost", "CRASHED", "RUNNING")

    def answered() -> bool:  # the service is back a moment after the flow run
        (agent.notes / "ask").touch()
        return "is valid" in agent.note("answers")[-1] and len(agent.note("answers")) > 1

    until_served("a second answer", answered)
    agent.let_go()
    ended(fleet, "lost", "CRASHED", "COMPLETED")
    assert agent.starts() == ["digits-0"], "the same agent went on"
    answers = agent.note("answers")
    assert len({each.split()[0] for each in answers}) == 1, "at the same address"
    record = fleet.record("lost", "digits")
    assert (record.status, record.host, record.tries) == ("completed", fleet.host("emil"), 1)
    counted = sum("is valid" in each for each in answers)
    assert record.validation_calls >= counted >= 2, "what was used before counts"


def test_a_host_that_falls_silent_is_replaced_and_superseded_when_it_comes_back(fleet: Fleet) -> None:
    agent = fleet.agent("silent", WAITING)
    worker = fleet.worker("gina", 1)
    with detached(fleet, agent, "silence"):
        pass
    orphan = agent.processes()
    supervisors = [each for process in orphan for each in process.parents() if "supervisor" in command_of(each)]
    silent = list(dict.fromkeys([*fleet.processes_of(worker), *supervisors, *orphan]))
    for process in silent:
        process.send_signal(signal.SIGSTOP)
    fleet.declare_dead()
    fleet.worker("hans", 1)
    until_served("try 2", lambda: agent.starts() == ["digits-0"] * 2, 400)
    for process in silent:
        process.send_signal(signal.SIGCONT)
    until_served("the end of the agent of the host that came back", lambda: not living(orphan), 300)
    assert len(agent.processes()) == 2, "and not the other one"
    agent.let_go()
    until_served("the record", lambda: fleet.record("silence", "digits"))
    record = fleet.record("silence", "digits")
    assert (record.status, record.host, record.tries) == ("completed", fleet.host("hans"), 2)
    until_served("the end", lambda: not {"RUNNING", "PENDING"} & set(fleet.states("group:silence")))
    assert "COMPLETED" in fleet.states("group:silence")
    assert fleet.record("silence", "digits") == record, "nothing that came late has replaced it"


def test_an_agent_that_can_resume_continues_from_its_checkpoint_on_another_worker(fleet: Fleet) -> None:
    agent = fleet.agent("counting", COUNTING)
    definition = agent.folder / "agent.yaml"
    definition.write_text(definition.read_text() + "resume: [.session]\ncheckpoint_every_seconds: 1\n")
    worker = fleet.worker("lena", 1)
    with detached(fleet, agent, "resumed"):
        known = _checkpoint(fleet, "resumed")
        until_served("a checkpoint of its steps", lambda: _checkpoint(fleet, "resumed", known + 2))
    # The host is lost as in a power failure.
    supervisors = {
        each for process in agent.processes() for each in process.parents() if "supervisor" in command_of(each)
    }
    fleet.kill(*fleet.processes_of(worker), *supervisors, *agent.processes())
    shutil.rmtree(fleet.folder / "lena")
    fleet.declare_dead()
    fleet.worker("mia", 1)
    until_served("the next start", lambda: len(agent.note("begins")) == 2, 400)
    agent.let_go()
    ended(fleet, "resumed", "CRASHED", "COMPLETED")
    (first, second) = (each.split() for each in agent.note("begins"))
    assert first == ["0", "0"]
    assert int(second[0]) > 0, "it goes on with the steps of its checkpoint"
    assert second[1] == "1"
    record = fleet.record("resumed", "digits")
    assert (record.status, record.host, record.tries) == ("completed", fleet.host("mia"), 2)
    assert record.resumed == 1


def _checkpoint(fleet: Fleet, group: str, least: int = 0) -> int:
    """The number of the last complete checkpoint of the attempt at digits; 0 if it has none, or a smaller number."""
    store = fleet.store()
    found = [store.read_json(url) or {"file": "0-0.tar"} for url in store.glob(f"checkpoints/{group}/digits/0/*.json")]
    number = max((int(each["file"].split("-")[1].removesuffix(".tar")) for each in found), default=0)
    return number if number >= least else 0


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
    with detached(fleet, agent, "ui"):
        pass
    fleet.kill(worker)  # its flow run goes on, and nobody else would end it
    (run,) = fleet.flow_runs("group:ui")
    fleet.api(f"/flow_runs/{run['id']}/set_state", {"state": {"type": "CANCELLING"}})  # as the button does
    until_served("the agent's end", lambda: agent.processes() == [], 200)
    ended(fleet, "ui", "CANCELLED")
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
from flows.fleet.setup import register, watch_silence
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
