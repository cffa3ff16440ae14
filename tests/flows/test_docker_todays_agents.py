"""Today's command line agents in their real images, against the gateway with a streaming model behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from flows.full_benchmark import full_benchmark
from sandbox.agent_registry import load_agent
from sandbox.docker.build import build_agent
from sandbox.isolation import Isolation
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests import roots
from tests.flows.streaming_model import StreamingModel, provide, serving, tools
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store

__all__ = ["base_image"]

pytestmark = [pytest.mark.slow, pytest.mark.service("docker"), pytest.mark.usefixtures("base_image")]
PROGRAM = "cp /home/data/sample_submission.csv /home/submission/submission.csv; echo done-by-the-shell; date > made.txt"


@dataclass(frozen=True)
class Case:
    """What is expected of an agent."""

    path: str
    """The path at the provider that its requests go to."""
    session: str
    """Pattern of its own transcript, below ``logs/session``."""
    tools: set[str] = field(default_factory=set)
    """Tools that are offered to the model, among others."""
    shell_limit: str = ""
    """What the model is told about the time limit of its shell."""


CASES = {
    "claude-code": Case("/v1/messages", "projects/*/*.jsonl", {"Bash", "Edit", "Read", "Write"}, "32400000ms"),
    "codex": Case("/v1/responses", "sessions/*/*/*/rollout-*.jsonl", {"exec_command", "apply_patch"}),
    "opencode": Case("/v1/chat/completions", "opencode/opencode.db", {"bash", "read", "grep"}, "32400000ms"),
    "mini-swe-agent": Case("/v1/chat/completions", "trajectory.json", {"bash"}),
}


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The model's address and what it is asked, for all agents."""
    with serving(StreamingModel, program=PROGRAM) as (url, handler):
        yield url, handler.asked


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *((name, "docker") for name in CASES),
        pytest.param("claude-code", "rootless", marks=pytest.mark.service("rootless")),
    ],
)
def test_a_real_agent_works_to_a_graded_submission(
    name: str, backend: str, store: Store, monkeypatch: pytest.MonkeyPatch, model: tuple[str, list[dict[str, Any]]]
) -> None:
    agent = load_agent(name)
    build_agent(agent)
    if backend == "rootless":
        roots.lend(get_settings().scratch, agent.image_name)
    url, asked = model
    asked.clear()
    provide(monkeypatch, url)
    request = RunRequest(agent=f"{name}@dev", run_group=name, store=store.root, isolation=Isolation(backend))
    full_benchmark(["digits"], request)
    where = store.local("runs", name, "digits", 0)
    log = (where / "logs" / "agent.log").read_text()
    [grade] = read_table(store, "grades").to_dict("records")
    [run] = read_table(store, "runs").to_dict("records")
    assert (grade["agent"], grade["outcome"], run["status"]) == (f"{name}@dev", "valid", "completed"), _told(where, log)

    # One turn in which it worked, and three in which it changed nothing.
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [each["exit_code"] for each in lines[:-1]] == [0] * 4, _told(where, log)
    assert lines[-1] == {"ended": "insists"}
    assert len(list((where / "logs" / "turns").glob("*.jsonl"))) == 4
    assert list((where / "logs" / "session").glob(CASES[name].session)), "its own transcript"

    case = CASES[name]
    requests = [each["body"] for each in asked if tools(each["body"])]
    assert {each["path"] for each in asked} == {case.path}
    assert all("web" not in each.lower() for body in requests for each in tools(body))
    assert case.tools <= set(tools(requests[0]))
    first, last = json.dumps(requests[0]), json.dumps(requests[-1])
    assert re.search(r"You have \d+ minutes left, until", first)
    assert "description.md" in first
    assert "one more such answer" in last
    assert re.search(r"You have \d+ minutes left, until", last[last.rindex("You stopped") :]), "told in each turn"
    assert "done-by-the-shell" in last, "it is one session"
    assert case.shell_limit in json.dumps(requests[0]["tools"])
    assert set(read_table(store, "usage")["input_tokens"]) == {100}
    assert (where / "trajectory.json").is_file()
    everything = b"".join(path.read_bytes() for path in where.rglob("*") if path.is_file())
    assert b"the-real-key" not in everything


def _told(where: Path, log: str) -> str:
    turns = sorted((where / "logs").glob("turns/*"))
    return "\n".join([log, *(path.read_text()[-3000:] for path in turns)])
