"""Today's command line agents continue their own sessions on other hosts, in their real images."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sandbox.agent_registry import load_agent
from sandbox.docker.build import build_agent
from sandbox.isolation import Isolation
from sandbox.world.files import remove_tree
from storage.runs.evidence.verify import verify_run
from tasks.grading import grade_run
from tasks.wiring.grades import grade_request
from tests.flows.streaming_model import StreamingModel, provide, serving, shells, told
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store
from tests.tasks.hosts import Host, World
from tests.waiting import until

__all__ = ["base_image"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.service("docker"),
    pytest.mark.usefixtures("base_image"),
]
SUBMIT = "cp /home/data/sample_submission.csv /home/submission/submission.csv; echo done-by-the-shell; date > made.txt"
TRAIN = "touch /home/tmp/works; sleep 3600"
LIMIT = 1800
MOVED = "continues on another machine"


class InterruptedModel(StreamingModel):
    """It is asked for its second turn when the first host is lost, and runs a program when the second one is."""

    second_turn: Event
    lost: Event

    def script(self, body: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """What it says, by how often the session was interrupted."""
        if not shells(body) or "You stopped" not in told(body):
            return super().script(body)
        interrupted = told(body).count(MOVED)
        if interrupted == 0:
            self.second_turn.set()
            self.lost.wait(600)
        return self.runs(body, "I train a model.", TRAIN) if interrupted == 1 else self.ends(body)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[InterruptedModel]]:
    with serving(InterruptedModel, program=SUBMIT, second_turn=Event(), lost=Event()) as (url, handler):
        assert issubclass(handler, InterruptedModel)
        provide(monkeypatch, url)
        yield handler
        handler.lost.set()


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "mini-swe-agent"])
def test_a_real_agent_continues_its_session_on_other_hosts(
    name: str,
    store: Store,
    tmp_path: Path,
    worlds: list[World],
    model: type[InterruptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build_agent(load_agent(name))
    monkeypatch.setenv("MLEBENCH_LLM_REQUESTS", "100")
    world = World(store, tmp_path, f"{name}@dev", isolation=Isolation("docker"), time_limit_seconds=LIMIT)
    worlds.append(world)

    first = world.host("one")
    until(model.second_turn.is_set, 300, may_yet=first.lives, what="the second turn")
    answered = len(model.asked) - 1
    one = first.checkpointed()
    lose(first)
    model.lost.set()

    second = world.host("two")
    second.wait(seconds=300)
    again = len(model.asked)
    two = second.checkpointed()
    lose(second)

    third = world.host("three")
    lines = third.ended(300)

    # What the model was told after the interruptions is the session of the first host, and what followed.
    conversations = [told(each["body"]) for each in model.asked if shells(each["body"])]
    begun = conversations[0]
    resumed = [next(each for each in conversations if each.count(MOVED) == times) for times in (1, 2)]
    for conversation in resumed:
        assert "description.md" in conversation, "its instructions"
        assert "I write a submission." in conversation, "what it said"
        assert "done-by-the-shell" in conversation, "and did"
    assert "An earlier session of yours was lost" not in "".join(conversations)

    # Time and budget that remain.
    left = [seconds_left(each[each.rindex("It is ") :]) for each in (begun, *resumed)]
    for seconds, used in zip(left, (0, one.seconds, two.seconds), strict=True):
        assert seconds <= 0.98 * (LIMIT - used) + 1, "to the second, without the reserve"
    assert 0 < one.seconds < two.seconds
    budgets = [requests_left(each[each.rindex("It is ") :]) for each in (begun, *resumed)]
    assert budgets[0] == 100
    assert 100 - answered - 1 <= budgets[1] <= 100 - answered
    assert budgets[2] <= 100 - again + 1

    # Each host reports its turns; the last one, the end.
    assert lines[-1] == {"ended": "insists"}
    run = world.folder_of_run()
    record = run.read_run()
    assert record is not None
    assert (record.status, record.tries, record.resumed, record.host) == ("completed", 3, 2, "three")
    assert (record.duration_seconds or 0) > two.seconds
    assert verify_run(run, None) == []
    grade = grade_run(grade_request(world.attempt))
    assert (grade.outcome, grade.agent) == ("valid", f"{name}@dev")


def lose(host: Host) -> None:
    """Lose a host and all that is on its disk."""
    host.lose()
    remove_tree(host.scratch)


def seconds_left(message: str) -> float:
    """How long the agent is told to have."""
    found = re.search(r"It is (\S+ \S+) UTC\..*?, until (\S+ \S+) UTC", message)
    assert found is not None
    now, end = map(datetime.fromisoformat, found.groups())
    return (end - now).total_seconds()


def requests_left(message: str) -> int:
    """How many requests the agent is told to have."""
    found = re.search(r"Of your budget for language models, (\d+) requests", message)
    assert found is not None
    return int(found[1])
