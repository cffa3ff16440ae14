"""Hosts that die or fall silent: an attempt goes on where its agent is, or begins anew elsewhere and is counted."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.deployments.fleet import ASKING, COUNTING, WAITING, Fleet, until_states
from tests.deployments.installation import until_served
from tests.processes import command_of, living

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.service("postgres")]


def test_the_next_flow_run_on_a_host_finds_the_agent_and_its_services_go_on(fleet: Fleet) -> None:
    agent = fleet.agent("asking", ASKING)
    worker = fleet.worker("emil", 1)
    with fleet.detached(agent, "lost"):
        fleet.worker("fritz", 1)  # another host is there, and leaves the attempt to the one that has the agent
        (agent.notes / "ask").touch()
        until_served("the first answer", lambda: len(agent.note("answers")) == 1)
    # Nobody hands out any more. The worker and its flow runs are killed, but not the agent and its supervisor.
    fleet.kill(*fleet.processes_of(worker))
    assert len(agent.processes()) == 2, "the agent outlives its orchestrator"
    fleet.worker("emil", 1)
    fleet.declare_dead()
    until_states(fleet, "lost", ["CRASHED", "RUNNING"])

    def answered() -> bool:  # the service is back a moment after the flow run
        (agent.notes / "ask").touch()
        return "is valid" in agent.note("answers")[-1] and len(agent.note("answers")) > 1

    until_served("a second answer", answered)
    agent.let_go()
    until_states(fleet, "lost", ["CRASHED", "COMPLETED"])
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
    with fleet.detached(agent, "silence"):
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
    with fleet.detached(agent, "resumed"):
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
    until_states(fleet, "resumed", ["CRASHED", "COMPLETED"])
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
