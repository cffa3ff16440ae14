"""The agent `mlab` in an image with a stand-in for MLAgentBench, against the gateway with a scripted language model.

MLAgentBench is downloaded from GitHub, so its place is taken by `tests/sandbox/agents/stand_in`. The clients of
language models, the script that runs it and all else in the image are those of real runs.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from flows.full_benchmark import full_benchmark
from sandbox.agent_registry import load_agent
from sandbox.definitions import BUILTIN_AGENTS
from sandbox.docker.build import build_agent
from sandbox.isolation import Isolation
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.flows.scripted_model import ScriptedModel, serving
from tests.flows.test_docker_flows import PROGRAM
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store

__all__ = ["base_image"]

pytestmark = [pytest.mark.slow, pytest.mark.service("docker"), pytest.mark.usefixtures("base_image")]
STAND_IN = Path(__file__).parents[1] / "sandbox" / "agents" / "stand_in"
STEPS: list[tuple[str, dict[str, str]]] = [
    ("List Files", {"dir_path": "data"}),
    ("Edit Script (AI)", {"script_name": "train.py", "edit_instruction": "write it", "save_name": "train.py"}),
    ("Execute Script", {"script_name": "train.py"}),
    ("Final Answer", {"final_answer": "The submission is written."}),
]


class _Model(ScriptedModel):
    """A language model that lists the data, has a program written by itself, executes it, and is done."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        [message] = body["messages"]
        if message["content"].startswith("Given this python script"):
            program = PROGRAM.replace("input/", "data/").replace("working/", "submission/")
            said = f"```python\n{program}\n```"
        else:
            steps = [each for each in self.asked if each["body"]["messages"][0]["content"].startswith("Tools:")]
            name, given = STEPS[len(steps) - 1]
            said = f"Thought: I go on.\nAction: {name}\nAction Input: {json.dumps(given)}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        return {**answer, "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}}


@pytest.fixture
def model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with serving(_Model) as model:
        yield model


def with_stand_in(folder: Path) -> Path:
    """The agent, with the stand-in in the place of what its Dockerfile downloads."""
    shutil.copytree(BUILTIN_AGENTS / "mlab", folder)
    shutil.copytree(STAND_IN / "MLAgentBench", folder / "MLAgentBench", ignore=shutil.ignore_patterns("__pycache__"))
    dockerfile = (folder / "Dockerfile").read_text()
    changed, count = re.subn(
        r"RUN git init.*?FETCH_HEAD\n", "COPY MLAgentBench /opt/mlab/MLAgentBench\n", dockerfile, flags=re.S
    )
    assert count == 1
    (folder / "Dockerfile").write_text(changed)
    return folder


def test_mlab_works_to_a_graded_submission(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: tuple[str, list[dict[str, Any]]]
) -> None:
    folder = with_stand_in(tmp_path / "agents" / "mlab-stand-in")
    build_agent(load_agent(folder), trusted=True)
    shutil.rmtree(folder / "MLAgentBench")  # it is in the image
    url, asked = model
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", url)
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__API_KEY", "the-real-key")
    get_settings.cache_clear()
    full_benchmark(
        ["breast-cancer"],
        RunRequest(agent=f"{folder}@dev", run_group="mlab", store=store.root, isolation=Isolation("docker")),
    )
    where = store.local("runs", "mlab", "breast-cancer", 0)
    log = (where / "logs" / "agent.log").read_text()
    [grade] = read_table(store, "grades").to_dict("records")
    assert (grade["agent"], grade["outcome"]) == ("mlab-stand-in@dev", "valid"), log
    assert grade["score"] > 0.9
    [run] = read_table(store, "runs").to_dict("records")
    assert (run["status"], run["gateway_requests"]) == ("completed", 5), log
    assert {each["key"] for each in asked} == {"Bearer the-real-key"}
    assert {each["body"]["model"] for each in asked} == {"gpt-4o-2024-08-06"}
    assert "train.csv" in asked[1]["body"]["messages"][0]["content"], "it sees the data"
    assert "accuracy 0.9" in asked[-1]["body"]["messages"][0]["content"], "and what its program prints"
    assert "LogisticRegression" in (where / "code" / "competition" / "train.py").read_text()
    everything = b"".join(path.read_bytes() for path in where.rglob("*") if path.is_file())
    assert b"the-real-key" not in everything
