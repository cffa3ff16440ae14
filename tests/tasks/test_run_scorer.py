"""An agent scores predictions on truth of its own: end to end, in both backends, and off by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from sandbox.isolation import PROCESSES, Isolation, Network
from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder
from storage.tables import read_table
from tasks.agent_run import run_agent
from tasks.report import write_tables
from tasks.wiring.backends import stop_all
from tasks.wiring.requests import Attempt, RunRequest
from tests import roots, services
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store, put_dataset

__all__ = ["base_image"]

AGENT = """\
#!/bin/bash
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
cp "$INSTRUCTIONS_FILE" "$LOGS_DIR/instructions"
env > "$LOGS_DIR/environment"
[ -z "$SCORE_SCRIPT" ] && exit 0
cp "$EXAMPLE_TRUTH" "$LOGS_DIR/example.csv"
sh "$SCORE_SCRIPT" --help > "$LOGS_DIR/help"
cd "$TMPDIR"
say() { echo "$1"; shift; sh "$SCORE_SCRIPT" "$@" 2>&1; echo "exit $?"; }
exec > "$LOGS_DIR/said"
say example "$EXAMPLE_TRUTH" "$EXAMPLE_TRUTH"
printf 'id,progression\\n1,100\\n2,50\\n' > truth.csv
printf 'id,progression\\n2,53\\n1,104\\n' > predictions.csv
say own predictions.csv truth.csv
printf 'id,progression\\n1,100\\n2,high\\n' > wrong.csv
say wrong predictions.csv wrong.csv
say none predictions.csv nothing.csv
say usage predictions.csv
"""


@pytest.fixture
def store(store: Store) -> Store:
    """A store with the competition diabetes, prepared."""
    put_dataset(store, "diabetes")
    return store


@pytest.fixture
def attempt(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """Let `AGENT` attempt diabetes; keyword arguments are those of the request. Returns the run's record."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(tmp_path / "agents")]))
    get_settings.cache_clear()
    folder = tmp_path / "agents" / "scoring"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        "description: Scores.\ntrusted: true\nlimits: {time_limit_seconds: 120, grace_seconds: 1}\n"
    )
    (folder / "start.sh").write_text(AGENT)

    def attempt(isolation: Isolation = PROCESSES, **options: Any) -> dict[str, Any]:
        request = RunRequest(agent="scoring", run_group="group", store=store.root, isolation=isolation, **options)
        run_agent(Attempt(request=request, competition_id="diabetes", seed=0, key="key"))
        record: dict[str, Any] = store.read_json(store.run("group", "diabetes", 0) + "/run.json")
        return record

    yield attempt
    stop_all()
    get_settings.cache_clear()


def folder_of(store: Store) -> Path:
    """The folder of the run."""
    folder = store.local("runs", "group", "diabetes", 0)
    assert folder is not None
    return folder


def left(store: Store, name: str) -> str:
    """What the agent left in its logs."""
    return (folder_of(store) / "logs" / name).read_text()


def check_what_was_said(store: Store, home: str) -> None:
    said = left(store, "said").splitlines()
    assert said[:6] == ["example", "0.0", "exit 0", "own", "3.5355339059327378", "exit 0"]
    assert said[6:8] == ["wrong", "TRUTH: Row 2: `progression` is 'high'; it must be a number."]
    assert said[8:12] == ["exit 1", "none", "There is no file nothing.csv.", "exit 1"]
    assert (said[12], said[-1]) == ("usage", "exit 2")
    help_text, text = left(store, "help"), left(store, "instructions")
    assert "Prints the competition's metric: root mean squared error, lower is better." in help_text
    assert "  id: identifies the row, the same in PREDICTIONS and TRUTH" in help_text
    assert "  progression: a number" in help_text
    assert f"sh {home}/score.sh PREDICTIONS TRUTH" in text
    assert "You can use it 2,000 times, at most 20 times per minute." in text
    assert left(store, "example.csv").splitlines()[0] == "id,progression"


def test_an_agent_scores_its_own_predictions(attempt: Callable[..., dict[str, Any]], store: Store) -> None:
    record = attempt(scorer=True)
    assert (record["status"], record["scorer"], record["scorer_calls"]) == ("completed", True, 3)
    home = next(line for line in left(store, "environment").splitlines() if line.startswith("HOME="))[5:]
    check_what_was_said(store, home)
    folder = folder_of(store)
    calls = [json.loads(line) for line in (folder / "scorer.jsonl").read_text().splitlines()]
    assert [call["verdict"] for call in calls] == ["valid", "valid", "invalid"]
    assert [call["score"] for call in calls] == [0.0, pytest.approx(3.5355339059327378), None]
    assert calls[1]["size"] == {"predictions": 26, "truth": 26}
    assert calls[1].keys() == {"time", "size", "sha256", "verdict", "score", "message", "seconds"}
    assert calls[2]["message"] == "TRUTH: Row 2: `progression` is 'high'; it must be a number."
    assert verify_run(RunFolder(store, "group", "diabetes", 0), "") == []
    ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    assert [line["call"]["verdict"] for line in ledger if line["kind"] == "scorer"] == ["valid", "valid", "invalid"]
    write_tables(store, "group")
    runs = read_table(store, "runs")
    assert (runs["scorer"].tolist(), runs["scorer_calls"].tolist()) == ([True], [3])


def test_without_it_nothing_is_told_of_a_scorer(attempt: Callable[..., dict[str, Any]], store: Store) -> None:
    record = attempt()
    assert not {"scorer", "scorer_calls"} & set(record)
    assert "score.sh" not in left(store, "instructions") + left(store, "environment")
    assert "SCORE_SCRIPT" not in left(store, "environment")
    assert not (folder_of(store) / "scorer.jsonl").exists()


@pytest.mark.parametrize("backend", services.ISOLATING)
@pytest.mark.parametrize("network", ["none", "gateway"])
@pytest.mark.usefixtures("base_image")
def test_it_works_without_a_network(
    attempt: Callable[..., dict[str, Any]], store: Store, tmp_path: Path, network: Network, backend: str
) -> None:
    if backend == "rootless":
        roots.lend(tmp_path / "scratch")
    record = attempt(Isolation(backend, network), scorer=True, obfuscated=True)
    assert (record["status"], record["scorer_calls"], record["network"]) == ("completed", 3, network)
    check_what_was_said(store, "/home")
    told = left(store, "help") + left(store, "instructions") + left(store, "environment") + left(store, "example.csv")
    assert "diabetes" not in told.lower()
