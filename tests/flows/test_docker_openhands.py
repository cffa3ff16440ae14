"""The real OpenHands in an image, against the gateway with a scripted language model behind it.

Not part of the suite: the image has two hundred packages and takes ten minutes. OPENHANDS_BASE names a base image with
Python 3.12 or later, and runs it:

    mlebench build base --base python:3.12-slim
    OPENHANDS_BASE=mlebench-base pytest tests/flows/test_docker_openhands.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from common.settings import get_settings
from flows.full_benchmark import full_benchmark
from sandbox.agent_registry import load_agent
from sandbox.docker.build import build_agent
from sandbox.isolation import Isolation
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.flows.scripted_model import ScriptedModel, serving
from tests.flows.test_docker_flows import PROGRAM
from tests.stores import Store

BASE = os.environ.get("OPENHANDS_BASE")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.service("docker"),
    pytest.mark.skipif(BASE is None, reason="its image takes ten minutes: name a base image in OPENHANDS_BASE"),
]


class _Model(ScriptedModel):
    """A language model that writes a program, runs it, asks what to do, has it checked, and is done."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        program = PROGRAM.replace("input/", "/home/data/").replace("working/", "/home/submission/")
        check = "sh /home/validate_submission.sh /home/submission/submission.csv"
        script: list[tuple[str, dict[str, Any]] | None] = [
            ("terminal", {"command": f"cat > solution.py <<'END'\n{program}\nEND\npython solution.py"}),
            None,
            ("terminal", {"command": check}),
            ("finish", {"message": "The submission is valid."}),
        ]
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "Shall I go on?"}
        if (act := script[min(turn, len(script) - 1)]) is not None:
            function = {"name": act[0], "arguments": json.dumps(act[1])}
            message["tool_calls"] = [{"id": f"call_{turn}", "type": "function", "function": function}]
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        answer["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
        answer["usage"] = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        return answer


@pytest.fixture
def model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with serving(_Model) as model:
        yield model


def test_the_real_openhands_against_the_gateway(
    store: Store, monkeypatch: pytest.MonkeyPatch, model: tuple[str, list[dict[str, Any]]]
) -> None:
    build_agent(load_agent("openhands"), {"BASE": str(BASE)})
    url, asked = model
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", url)
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__API_KEY", "the-real-key")
    get_settings.cache_clear()
    full_benchmark(
        ["breast-cancer"],
        RunRequest(agent="openhands@dev", run_group="openhands", store=store.root, isolation=Isolation("docker")),
    )
    where = store.local("runs", "openhands", "breast-cancer", 0)
    log = (where / "logs" / "agent.log").read_text()
    [grade] = read_table(store, "grades").to_dict("records")
    assert (grade["agent"], grade["outcome"]) == ("openhands@dev", "valid"), log
    assert grade["score"] > 0.9
    [run] = read_table(store, "runs").to_dict("records")
    assert (run["status"], run["validation_calls"], run["gateway_requests"]) == ("completed", 1, 4), log
    assert {each["key"] for each in asked} == {"Bearer the-real-key"}
    assert "Nobody can answer" in json.dumps(asked[2]["body"])
    assert "Submission is valid." in json.dumps(asked[-1]["body"])
    assert "LogisticRegression" in (where / "code" / "solution.py").read_text()
    everything = b"".join(path.read_bytes() for path in where.rglob("*") if path.is_file())
    assert b"the-real-key" not in everything
