"""A run group is not overwritten without a word: the same group under other conditions is refused, naming them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.errors import UserError
from common.settings import get_settings
from flows.cli import main
from storage.runs.folders import RunFolder
from tests.agents import write_agent
from tests.stores import Store

COPY = 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n'
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    return write_agent(tmp_path / "copies", COPY)


@pytest.fixture
def run(tmp_path: Path, agent: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the agent in the group g, with more options; returns the exit code and the output."""

    def run(*options: str) -> tuple[int, str]:
        capfd.readouterr()
        get_settings.cache_clear()
        store = str(tmp_path / "store")
        code = main(["run", "-c", "diabetes", "--run-group", "g", "--agent", str(agent), "--store", store, *options])
        return code, "".join(capfd.readouterr())

    return run


def files(tmp_path: Path) -> dict[str, bytes]:
    """What the store holds of the group, apart from the manifest."""
    group = tmp_path / "store" / "runs" / "g"
    return {str(path.relative_to(group)): path.read_bytes() for path in group.rglob("*") if path.is_file()}


def test_other_conditions_are_refused_and_named(tmp_path: Path, agent: Path, run: Run) -> None:
    assert run("--time-limit", "600")[0] == 0
    before = files(tmp_path)

    code, output = run("--time-limit", "1200")
    assert (code, output.count("\n")) == (1, 1), output
    assert "time limit was 10 minutes, is now 20 minutes" in output
    assert "--run-group" in output
    assert "--overwrite" in output
    (agent / "start.sh").write_text(f"#!/bin/bash\n# another comment, which the agent can read\n{COPY}")
    code, output = run("--time-limit", "600")
    assert code == 1
    assert "the files of the agent have changed" in output
    assert "time limit" not in output
    assert files(tmp_path) == before


def test_what_agents_do_not_get_does_not_count(tmp_path: Path, agent: Path, run: Run) -> None:
    (agent / "README.md").write_text("first")
    assert run()[0] == 0
    (agent / "README.md").write_text("second")
    (agent / ".gitignore").write_text("logs")

    code, output = run()

    assert code == 0
    assert "reused" in output
    assert not list((tmp_path / "scratch").rglob("README.md"))


def test_whoever_insists_leaves_a_trace(tmp_path: Path, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--time-limit", "600")[0] == 0
    (record,) = (tmp_path / "store/runs/g/diabetes/0").glob("run.json")
    head = json.loads(record.read_text())["ledger_head"]
    code, output = run("--time-limit", "1200", "--overwrite")
    assert code == 0, output

    assert main(["verify", "g", "--store", str(tmp_path / "store")]) == 0
    told = "diabetes/0: a run was overwritten (time limit was 10 minutes, is now 20 minutes)"
    assert told in capfd.readouterr().out
    entries = [json.loads(path.read_text()) for path in (tmp_path / "store/manifests/g").glob("*.json")]
    assert [entry["head"] for entry in entries if entry["kind"] == "overwritten"] == [head]
    assert json.loads(record.read_text())["time_limit_seconds"] == 1200


def test_a_task_of_a_worker_refuses_too(tmp_path: Path, agent: Path, run: Run) -> None:
    from tasks.agent_run import run_agent
    from tasks.wiring.attempts import attempts_of
    from tasks.wiring.context import RunContext
    from tasks.wiring.requests import RunRequest

    assert run()[0] == 0
    request = RunRequest(agent=str(agent), run_group="g", store=str(tmp_path / "store"), time_limit_seconds=60)
    (attempt,) = attempts_of(RunContext.of(request), "diabetes")
    with pytest.raises(UserError, match="is now 1 minute"):
        run_agent(attempt)


def test_what_feedback_was_is_said_in_words(tmp_path: Path, agent: Path, run: Run) -> None:
    from tasks.wiring.attempts import attempts_of, differences
    from tasks.wiring.context import RunContext
    from tasks.wiring.requests import RunRequest

    assert run()[0] == 0
    record = RunFolder(Store(str(tmp_path / "store")), "g", "diabetes", 0).read_run()
    assert record is not None

    def said(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
        context = RunContext.of(RunRequest(agent=str(agent), run_group="g", store=str(tmp_path / "store"), **now))
        (attempt,) = attempts_of(context, "diabetes")
        return [text for text in differences(context, record.replace(**then), attempt) if "limit" not in text]

    of_five = {"feedback": 0.3, "feedback_calls_per_day": 5}
    assert said(of_five, {}) == ["feedback was 30 %, is now off"]
    assert said({}, {"feedback": 0.2, "scorer": True}) == ["scorer was off, is now on", "feedback was off, is now 20 %"]
    assert said(of_five, {"feedback": 0.3, "feedback_calls": 9}) == ["public scores a day was 5, is now 9"]
    undivided = {"feedback_missing": "3 units are too few"}
    assert said(undivided, {}) == ["feedback was requested, is now off"]
    assert said(undivided, {"feedback": 0.3, "scorer": True}) == ["scorer was off, is now on"]
