"""The end of `mlebench run` tells what happened in the runs, and the exit code of agents that only crash is 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import main
from tests.agents import write_agent
from tests.stores import Store

pytestmark = pytest.mark.slow


def run(store: Store, agent: Path, capfd: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str]]:
    capfd.readouterr()
    code = main(["run", "-c", "diabetes", "--agent", str(agent), "--run-group", "ends", "--store", store.root, *more])
    return code, capfd.readouterr().out.splitlines()


@pytest.mark.parametrize(("last", "arguments"), [("any medal", ["run", "--agent", "dummy"]), ("1 done", ["prepare"])])
def test_each_line_is_printed_once_and_nothing_of_prefects_own(store: Store, last: str, arguments: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_LOGGING_")}
    command = [sys.executable, "-m", "flows.cli", *arguments, "-c", "diabetes", "--store", store.root]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert last in done.stdout
    assert "INFO" not in done.stdout + done.stderr
    lines = (done.stderr + done.stdout).splitlines()
    assert sorted(set(lines)) == sorted(lines)


def test_an_agent_that_only_crashes_fails_the_command(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, lines = run(store, write_agent(tmp_path / "crashes", "exit 3\n"), capfd, "--seeds", "2")
    assert code == 1
    text = "\n".join(lines)
    assert "2 runs: agent crashed (the agent ended with exit code 3; " in text
    assert "; no submission\n  diabetes seed 0, diabetes seed 1\n" in text
    assert f"  log: mlebench logs ends/diabetes/0 --store {store.local()}" in lines
    assert "Every run of crashes crashed." in lines
    # The command that it advises works.
    (advice,) = [line.split("mlebench ")[1].split() for line in lines if "log: " in line]
    assert main(advice) == 0


def test_time_outs_and_invalid_submissions_are_told_beside_the_score(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = (
        'case $SEED in\n0) cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv";;\n'
        '1) echo nonsense >"$SUBMISSION_DIR/submission.csv"; exit 1;;\n2) sleep 100;;\nesac\n'
    )
    code, lines = run(store, write_agent(tmp_path / "mixed", script), capfd, "--seeds", "3", "--time-limit", "2s")
    assert code == 0, "an agent that failed in some runs has results"
    text = "\n".join(lines)
    assert "1 run: time limit reached (the time limit of 2 seconds was reached" in text, text
    assert "no submission\n  diabetes seed 2\n" in text
    assert "1 run: agent crashed (the agent ended with exit code 1; " in text
    assert "; invalid submission (" in text
    assert "Every run" not in text
    assert "diabetes seed 0" not in text.split("Scores and medals")[1]


def test_what_may_be_meant_as_the_submission_is_named_and_kept(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = (
        'cp "$SAMPLE_SUBMISSION" "$HOME/Submission.csv"; gzip -c "$SAMPLE_SUBMISSION" > "$TMPDIR/submission.csv.gz"'
    )
    code, lines = run(store, write_agent(tmp_path / "elsewhere", script), capfd)
    assert code == 0, "an agent without a submission has a result"
    text = "\n".join(lines)
    named = "files that look like a submission are kept in misplaced/ of the run: "
    assert "1 run: no submission (the agent wrote no submission/submission.csv; " in text, text
    assert named in text
    assert main(["show", "ends/diabetes/0", "--store", store.root]) == 0
    shown = capfd.readouterr().out
    assert named in shown
    assert "Submission.csv, tmp/submission.csv.gz" in shown or "tmp/submission.csv.gz, Submission.csv" in shown
    assert "  misplaced/Submission.csv\n" in shown
    assert "  misplaced/tmp/submission.csv.gz\n" in shown
    assert main(["ls", "ends", "--store", store.root]) == 0
    kept = store.read(f"{store.root}/runs/ends/diabetes/0/misplaced/Submission.csv")
    (tmp_path / "kept.csv").write_bytes(kept)
    assert main(["grade-sample", str(tmp_path / "kept.csv"), "diabetes", "--store", store.root]) == 0
