"""Agents ask for scores on public test rows: end to end, in both backends, across restarts, and off by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from common import progress
from common.errors import UserError
from common.settings import get_settings
from flows.cli import main
from sandbox.isolation import PROCESSES, Isolation, Network
from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder
from storage.tables import read_table
from tasks import agent_run
from tasks.agent_run import run_agent
from tasks.report import write_tables
from tasks.wiring import feedback
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
[ -z "$PUBLIC_SCORE_SCRIPT" ] && exit 0
sh "$PUBLIC_SCORE_SCRIPT" --help > "$LOGS_DIR/help"
cd "$TMPDIR"
say() { sh "$PUBLIC_SCORE_SCRIPT" "$@" 2>&1; echo "exit $?"; }
exec > "$LOGS_DIR/said"
awk -F, 'NR == 1 {print; next} {print $1 ",1000"}' "$SAMPLE_SUBMISSION" > worse.csv
say worse.csv
say "$SAMPLE_SUBMISSION"
echo nonsense > wrong.csv
say wrong.csv
say nothing.csv
say worse.csv
printf '2\\nsubmission.csv\\n' > "$SUBMISSION_DIR/final.txt"
"""
Do = Callable[..., dict[str, Any]]


@pytest.fixture
def store(store: Store) -> Store:
    """A store with the competition diabetes, prepared."""
    put_dataset(store, "diabetes")
    return store


@pytest.fixture
def attempt(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Do]:
    """Let an agent attempt diabetes; keyword arguments are those of the request. Returns the run's record."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(tmp_path / "agents")]))
    get_settings.cache_clear()
    folder = tmp_path / "agents" / "asking"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        "description: Asks.\ntrusted: true\nlimits: {time_limit_seconds: 300, grace_seconds: 1}\n"
    )

    def attempt(isolation: Isolation = PROCESSES, script: str = AGENT, **options: Any) -> dict[str, Any]:
        (folder / "start.sh").write_text(script)
        request = RunRequest(agent="asking", run_group="group", store=store.root, isolation=isolation, **options)
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


def lines(store: Store, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder_of(store) / name).read_text().splitlines()]


def check_what_was_said(store: Store, home: str) -> None:
    said = left(store, "said").splitlines()
    answers = [json.loads(line) for line in said if line.startswith("{")]
    assert [answer["submission"] for answer in answers] == [1, 2, 3]
    assert [answer["improved"] for answer in answers] == [True, True, False]
    assert [answer["calls_left"] for answer in answers] == [2, 1, 0]
    assert answers[2]["best"] == answers[1]["best"] < answers[0]["best"]  # the metric is an error
    assert all(answer.keys() == {"submission", "best", "improved", "calls_left"} for answer in answers)
    assert [line for line in said if line.startswith("exit")] == ["exit 0", "exit 0", "exit 1", "exit 1", "exit 0"]
    text = left(store, "instructions")
    assert f"sh {home}/public_score.sh FILE" in text
    assert "30 % of it" in text
    assert "3 scores within 24 hours" in text
    assert "root mean squared error, lower is better" in left(store, "help")


def test_an_agent_asks_for_public_scores(attempt: Do, store: Store) -> None:
    record = attempt(feedback=0.3, feedback_calls=3)
    assert record["status"] == "completed"
    assert (record["feedback"], record["feedback_calls_per_day"], record["feedback_id"]) == (0.3, 3, "id")
    assert (record["public_score_calls"], record["final"]) == (4, ["2", "submission.csv"])
    check_what_was_said(store, next(x[5:] for x in left(store, "environment").splitlines() if x.startswith("HOME=")))
    kept = lines(store, "public_scores.jsonl")
    assert [line["number"] for line in kept] == [1, 2, 3]
    assert kept[0].keys() == {"time", "number", "sha256", "score", "standard_error", "told"}
    assert [line["verdict"] for line in lines(store, "public_score.jsonl")] == ["valid", "valid", "invalid", "valid"]
    folder = folder_of(store)
    assert sorted(path.name for path in (folder / "public_scores").iterdir()) == ["1.csv", "2.csv", "3.csv"]
    assert (folder / "public_scores" / "2.csv").read_bytes() == (folder / "submission.csv").read_bytes()
    assert (folder / "final.txt").read_text() == "2\nsubmission.csv\n"
    assert verify_run(RunFolder(store, "group", "diabetes", 0), "") == []
    ledger = lines(store, "ledger.jsonl")
    assert {"final.txt", "public_scores.jsonl", "public_score.jsonl", "public_scores/2.csv"} <= {
        line["path"] for line in ledger if line["kind"] == "file"
    }
    assert sum(line["kind"] == "public_score" for line in ledger) == 4
    write_tables(store, "group")
    runs = read_table(store, "runs")
    assert runs[["feedback", "feedback_calls_per_day", "public_score_calls"]].to_numpy().tolist() == [[0.3, 3, 4]]


def test_no_score_of_the_state_is_told(attempt: Do, store: Store) -> None:
    """What the process of the services writes has the score that was told, rounded, and no other."""
    attempt(feedback=0.3, feedback_calls=3)
    scores = {str(line["score"]) for line in lines(store, "public_scores.jsonl")}
    told = (folder_of(store) / "public_score.jsonl").read_text() + left(store, "said")
    assert not any(score in told for score in scores)


def test_without_it_nothing_is_told_of_public_scores(attempt: Do, store: Store) -> None:
    record = attempt(script=AGENT.replace('[ -z "$PUBLIC', 'echo 1 > "$SUBMISSION_DIR/final.txt"\n[ -z "$PUBLIC'))
    assert not {"feedback", "public_score_calls", "final", "feedback_id"} & set(record)
    assert "public_score" not in left(store, "instructions") + left(store, "environment")
    assert not (folder_of(store) / "final.txt").exists()


def test_where_the_test_set_cannot_be_divided(attempt: Do, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has no feedback and its record says so, or it is refused."""
    monkeypatch.setattr(feedback, "division_of", lambda *_: feedback.Division(problem="3 units are too few"))
    with pytest.raises(UserError, match=r"diabetes \(3 units are too few\); give --feedback a larger share"):
        attempt(feedback=0.3, feedback_required=True)
    record = attempt(feedback=0.3)
    assert record["message"] == "without feedback, as the test set cannot be divided: 3 units are too few"
    assert record["feedback_missing"] == "3 units are too few"
    assert not {"feedback", "public_score_calls"} & set(record)
    assert "public_score" not in left(store, "instructions")


def test_the_condition_of_a_run_is_that_of_its_start(
    attempt: Do, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarted orchestrator that finds out something else of the test set does not change it."""
    with monkeypatch.context() as broken:
        broken.setattr(agent_run, "store_run", Mock(side_effect=ConnectionResetError))
        with pytest.raises(ConnectionResetError):
            attempt(feedback=0.3, feedback_calls=3)
    monkeypatch.setattr(feedback, "division_of", lambda *_: feedback.Division(problem="3 units are too few"))
    record = attempt(feedback=0.3, feedback_calls=3)
    assert (record["feedback"], record["feedback_id"], record["final"]) == (0.3, "id", ["2", "submission.csv"])


@pytest.mark.parametrize(
    ("make", "note"),
    [
        ('printf "1\\n2\\n3\\n" > $f', "final.txt must have one or two lines"),
        ("echo 7 > $f", "it names 7, and there is no such submission"),
        ("echo ../1 > $f", "final.txt must have one or two lines"),
        ("head -c 300000 /dev/zero > $f", "it has 293 KiB"),
        ("ln -s /etc/hostname $f", "it is a symbolic link, not a file"),
        ("mkdir $f", "it is a folder, not a file"),
        ("mkfifo $f", "it is a pipe, not a file"),
        ("printf '\\377\\376' > $f", "final.txt must have one or two lines"),
    ],
)
def test_a_final_choice_that_is_none(attempt: Do, store: Store, make: str, note: str) -> None:
    """It is ignored, and the record says why; nothing of the host is read or kept."""
    script = f'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\nf="$SUBMISSION_DIR/final.txt"\n{make}\n'
    ended: list[str] = []
    with progress.listening(lambda event: ended.append(event.detail) if event.state == "ended" else None):
        record = attempt(script="#!/bin/bash\n" + script, feedback=0.3)
    assert record["message"].startswith("final.txt is ignored: ")
    assert note in record["message"]
    assert "final" not in record
    assert record["submission_exists"]
    final = folder_of(store) / "final.txt"
    assert not final.exists() or b"localhost" not in final.read_bytes()
    assert ended[-1].endswith(", final.txt was ignored")


@pytest.mark.parametrize("backend", services.ISOLATING)
@pytest.mark.parametrize("network", ["none", "gateway"])
@pytest.mark.usefixtures("base_image")
def test_it_works_without_a_network(attempt: Do, store: Store, tmp_path: Path, network: Network, backend: str) -> None:
    if backend == "rootless":
        roots.lend(tmp_path / "scratch")
    record = attempt(Isolation(backend, network), feedback=0.3, feedback_calls=3, obfuscated=True)
    assert (record["status"], record["public_score_calls"], record["network"]) == ("completed", 4, network)
    check_what_was_said(store, "/home")
    told = left(store, "help") + left(store, "instructions") + left(store, "environment") + left(store, "said")
    assert "diabetes" not in told.lower()


def test_the_command_names_test_sets_that_cannot_be_divided(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before anything starts; with --feedback-required it is refused in one line."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    command = ["run", "-c", "diabetes", "--agent", "dummy", "--store", store.root, "--feedback", "0.01"]
    reason = "a part has only 1 unit of 133, and needs 5"
    why = f"test sets cannot be divided into a public and a private part: diabetes ({reason})"
    assert main([*command, "--feedback-required"]) == 1
    assert capfd.readouterr().err.startswith(f"mlebench: {why}; give --feedback a larger share")
    assert main([*command, "--dry-run"]) == 0
    assert f"mlebench: some runs have no feedback, because {why}\n" in capfd.readouterr().err
