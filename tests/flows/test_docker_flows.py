"""The flows with agents in containers, on a real Docker engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.settings import get_settings
from flows.cli import main
from flows.full_benchmark import full_benchmark
from sandbox.agent_registry import load_agent
from sandbox.definitions import BUILTIN_AGENTS
from sandbox.docker.build import build_agent
from sandbox.isolation import Isolation
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.flows.scripted_model import ScriptedModel, serving
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store

__all__ = ["base_image"]

pytestmark = [pytest.mark.service("docker"), pytest.mark.usefixtures("base_image")]
CONTAINERS = Isolation("docker")


def test_the_baseline_in_a_container(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "-c", "digits", "--backend", "docker", "--agent", "baseline", "--run-group", "group"]
    assert main([*arguments, "--store", store.root]) == 0
    grades, runs = read_table(store, "grades"), read_table(store, "runs")
    assert list(grades["outcome"]) == ["valid"]
    assert set(runs["backend"]) == {"docker"}
    assert set(runs["network"]) == {"gateway"}
    assert all(digest.startswith("sha256:") for digest in runs["image_digest"])
    snapshots = read_table(store, "snapshots")
    assert set(snapshots["run_id"]) == set(grades["run_id"])
    last = snapshots.sort_values("at_seconds").groupby("run_id")["score"].last()
    assert last.to_dict() == grades.set_index("run_id")["score"].to_dict()
    assert "Network" in (store.local("reports", "group") / "report.html").read_text()
    capsys.readouterr()
    assert main([*arguments, "--store", store.root]) == 0
    assert "2 reused" in capsys.readouterr().out  # the preparation and the run


def test_the_agent_asks_whether_its_submission_is_valid(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "agents" / "asks"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        "description: Asks.\nenv: {TOKEN: '${{ secrets.MY_TOKEN }}'}\nlimits: {memory_bytes: 1000000000, cpus: 1}\n"
    )
    (folder / "start.sh").write_text(
        'cp "$SAMPLE_SUBMISSION" submission/submission.csv\n'
        'echo "token $TOKEN"; env | grep -c s3cret-key\n'
        "sh /home/validate_submission.sh /home/submission/submission.csv\n"
        "echo nonsense >x.csv; sh /home/validate_submission.sh x.csv\n"
    )
    monkeypatch.setenv("MY_TOKEN", "of-mine")
    monkeypatch.setenv("MLEBENCH_AGENT_SECRETS", '["MY_TOKEN"]')
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret-key")
    get_settings.cache_clear()
    full_benchmark(["digits"], RunRequest(agent=str(folder), run_group="asks", store=store.root, isolation=CONTAINERS))
    log = (store.local("runs", "asks", "digits", 0) / "logs" / "agent.log").read_text()
    assert "token of-mine\n0\n" in log
    assert "valid" in log
    assert read_table(store, "runs")["validation_calls"].tolist() == [2]


PROGRAM = """
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
sample = pd.read_csv("input/sample_submission.csv")
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
key, label = sample.columns[:2]
features = [name for name in test.columns if name != key]
model = LogisticRegression(max_iter=500)
print("accuracy", cross_val_score(model, train[features], train[label], cv=3).mean())
model.fit(train[features], train[label])
sample[label] = model.predict_proba(test[features])[:, 1]
sample.to_csv("working/submission.csv", index=False)
"""


class _Model(ScriptedModel):
    """A language model whose first program fails, and which reviews programs by the number that they print."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(body["input"])
        if body.get("tools"):
            printed = re.findall(r"accuracy ([0-9.]+)", text)
            review = {"is_bug": not printed, "summary": "Run.", "metric": float((printed or ["0"])[-1])}
            review["lower_is_better"] = False
            name = body["tools"][0]["name"]
            output = {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": json.dumps(review)}
        else:
            first = len([each for each in self.asked if not each["body"].get("tools")]) == 1
            program = "raise SystemExit('not yet')" if first else PROGRAM
            content = {"type": "output_text", "text": f"A linear model.\n```python\n{program}\n```", "annotations": []}
            output = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [content]}
        usage: dict[str, Any] = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        answer = {"id": "r", "object": "response", "created_at": 1, "model": body["model"], "status": "completed"}
        answer |= {"output": [output], "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
        return answer


@pytest.fixture
def model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with serving(_Model) as model:
        yield model


def test_the_real_aide_against_the_gateway(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: tuple[str, list[dict[str, Any]]]
) -> None:
    build_agent(load_agent("aide"))
    folder = tmp_path / "agents" / "aide"
    shutil.copytree(BUILTIN_AGENTS / "aide", folder)
    definition = yaml.safe_load((folder / "agent.yaml").read_text())
    definition["variants"]["short"] = {"extends": "dev", "kwargs": {"agent.steps": 3}}
    (folder / "agent.yaml").write_text(yaml.safe_dump(definition))
    url, asked = model
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", url)
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__API_KEY", "the-real-key")
    get_settings.cache_clear()
    full_benchmark(
        ["breast-cancer"], RunRequest(agent=f"{folder}@short", run_group="aide", store=store.root, isolation=CONTAINERS)
    )
    where = store.local("runs", "aide", "breast-cancer", 0)
    log = (where / "logs" / "agent.log").read_text()
    assert '"step": 3' in log, log
    [grade] = read_table(store, "grades").to_dict("records")
    assert (grade["agent"], grade["outcome"]) == ("aide@short", "valid"), log
    assert grade["score"] > 0.9
    assert {each["key"] for each in asked} == {"Bearer the-real-key"}
    assert {each["path"] for each in asked} == {"/v1/responses"}
    usage = read_table(store, "usage")
    assert usage["input_tokens"].tolist() == [100] * 6
    assert "LogisticRegression" in (where / "code" / "solution.py").read_text()
    everything = b"".join(path.read_bytes() for path in where.rglob("*") if path.is_file())
    assert b"the-real-key" not in everything
    assert '{"resumed": 3}' in _resumed(folder, where / "logs" / "0-run" / "journal.json")


def _resumed(agent: Path, journal: Path) -> str:
    """What the real package prints that continues a journal of as many steps as it is to make."""
    variables = [
        "HOME=/home",
        "MLEBENCH_RESUMED=1",
        "OPENAI_API_KEY=none",
        *(f"{name}_DIR=/home" for name in ("SUBMISSION", "CODE", "LOGS")),
    ]
    command = ["docker", "run", "--rm", "--network=none", "--workdir=/home", "--entrypoint=python3"]
    command += [part for each in variables for part in ("--env", each)]
    command += ["--volume", f"{journal}:/home/.aide/journal.json:ro", "--volume", f"{agent}:/agent:ro"]
    command += [
        "mlebench-agent-aide",
        "/agent/aide_run.py",
        "data_dir=/agent",
        "goal=g",
        "agent.steps=3",
        "log_dir=/home/logs",
    ]
    command += ["workspace_dir=/home/work", "generate_report=false", "copy_data=false", "preprocess_data=false"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
