"""`--json` of every command that prints a result: one JSON object on each line, and nothing else on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from common.settings import get_settings
from flows.cli import COMMANDS, cli, main
from tests.flows.graded import GROUP, dataset, graded, group
from tests.stores import Store

__all__ = ["dataset", "graded", "group"]

RUN = f"{GROUP}/diabetes/0"
RESULTS: dict[str, tuple[list[str], set[str]]] = {
    "list": (["--split", "demo"], {"id", "metric"}),
    "issues": (["spaceship-titanic"], {"competition_id", "severity"}),
    "agents": ([], {"agent", "trusted", "variants"}),
    "agents NAME": (["dummy"], {"agent", "time_limit_seconds"}),
    "config": ([], {"setting", "value", "source"}),
    "config NAME": (["store"], {"setting", "value", "source", "about"}),
    "doctor": (["-c", "diabetes"], {"about", "verdict", "message", "remedy"}),
    "du": ([], {"kind", "bytes", "state"}),
    "ls": ([], {"run_group", "runs", "agents", "cost_usd", "in_progress"}),
    "ls GROUP": ([GROUP], {"run", "status", "score", "medal", "host", "gpus", "tries", "resumed", "cost_usd"}),
    "show": ([RUN], {"record", "grade", "files"}),
    "verify": ([GROUP], {"verified", "conditions", "runs", "manifest"}),
    "compare": ([GROUP, f"{GROUP}@v1"], {"a", "b", "conditions", "competitions", "differences"}),
    "plan": ([GROUP], {"competitions", "seeds", "hours", "dollars", "power_these", "detectable_like_these"}),
    "report": ([GROUP], {"experiment_id"}),
    "leaderboard": (["--split", "demo"], {"competition_id", "gold"}),
    "check": (["diabetes", "--prepared", "{dataset}"], {"competition_id", "check", "verdict", "problems"}),
    "regrade": ([GROUP], {"run", "before", "after"}),
    "grade": (["--submission", "{lines}", "--output-dir", "{out}"], {"total_runs", "competition_reports"}),
    "grade-sample": (["{dataset}/public/sample_submission.csv", "diabetes"], {"competition_id", "score"}),
    "examine": ([GROUP, "--halves", "20"], {"kind"}),
    "examine --only violations": ([GROUP], {"kind", "rows", "runs", "flagged"}),
    "export": ([GROUP, "--output-dir", "{out}"], {"path"}),
    "export --format submissions": ([GROUP, "--output", "{out}"], {"path", "runs", "submissions"}),
    "rm": ([GROUP, "--dry-run"], {"done", "run_group", "files", "bytes"}),
    "import-report": (["{report}", "--group", "imported"], {"run_group", "reports", "seeds"}),
    "gc": (["--orphans", "--dry-run"], set()),
    "run": (["-c", "diabetes", "--dry-run", "--agent", "dummy"], {"runs", "seconds_at_most", "dollars_at_most"}),
}
"""Commands with arguments, and the keys of each of the objects that they print."""
ELSEWHERE = {
    "prepare": "tests/flows/test_adopt_command.py",
    "adopt": "tests/flows/test_adopt_command.py",
    "cancel": "tests/flows/test_in_progress.py",
    "watch": "tests/deployments/test_fleet.py",
    "kernels": "tests/flows/test_kernels.py",
}
"""Commands with `--json` that need more than a store: the tests that run them so."""
NONE = {
    "agent try": "passes --json on to `run`",
    "worker": "runs until it is stopped",
    "serve": "runs until it is stopped",
    "notify": "sets something up",
    "build": "makes an image",
    "agent new": "makes a folder",
    "new": "makes a folder",
    "open": "opens a browser",
    "logs": "prints the text of a log",
    "completion": "prints a script for a shell",
}
"""Commands without `--json`, and why."""


def test_every_command_has_json_or_a_reason_why_it_needs_none() -> None:
    tested = {each for each in COMMANDS if each in RESULTS}
    assert sorted([*tested, *ELSEWHERE, *NONE]) == sorted(COMMANDS)
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    have = {name for name, each in commands.items() if each and any("--json" in one.opts for one in each.params)}
    assert have == tested | set(ELSEWHERE)


@pytest.mark.parametrize("name", RESULTS)
def test_the_result_is_json(
    name: str,
    group: Store,
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLEBENCH_STORE", group.root)
    get_settings.cache_clear()
    lines = tmp_path / "lines.jsonl"
    line = {"competition_id": "diabetes", "submission_path": str(dataset / "public/sample_submission.csv")}
    lines.write_text(json.dumps(line))
    paths = {"dataset": dataset, "lines": lines, "out": tmp_path / "out", "report": tmp_path / "report.json"}
    if name == "import-report":
        assert main(["grade", "--submission", str(lines), "--output-dir", str(tmp_path)]) == 0
        next(tmp_path.glob("*_grading_report.json")).rename(paths["report"])
    arguments, keys = RESULTS[name]
    command, *options = [each for each in name.split(" ") if not each.isupper()]
    capfd.readouterr()
    code = main([command, *options, *(each.format(**paths) for each in arguments), "--json"])
    out, err = capfd.readouterr()
    assert code == 0 or command in ("doctor", "verify"), err
    # A list over several lines, as the published tool prints it.
    found: list[Any] = json.loads(out) if command == "report" else [json.loads(each) for each in out.splitlines()]
    for each in found:
        assert keys <= set(each), each
    assert found or not keys
