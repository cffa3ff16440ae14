"""`mlebench agent try`: one run without Prefect, with the records and the ends of `mlebench run`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.runs.folders import stored_runs
from storage.store import Store
from tests.agents import write_agent
from tests.flows.test_own_agent import output
from tests.flows.test_stopping import Terminal, processes_of
from tests.waiting import until

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from flows.cli import main
code = main(sys.argv[1:])
print("imported:", sorted({"prefect", "distributed"} & set(sys.modules)))
sys.exit(code)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SCRATCH": "scratch", "AGENT_DIRS": "agents", "STORE": "store"}.items():
        monkeypatch.setenv(f"MLEBENCH_{name}", str(tmp_path / value))
    get_settings.cache_clear()


def test_a_trial_imports_no_prefect_and_its_group_is_like_that_of_any_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", RUN, "agent", "try", "dummy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "imported: []" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("diabetes seed 0: graded score ")

    assert done.stdout.splitlines()[-2] == "Next: mlebench run --split demo --agent dummy --seeds 2"
    store = Store(str(tmp_path / "store"))
    output(capfd, "run", "-c", "diabetes", "--agent", "dummy", "--time-limit", "5m", "--run-group", "flow")
    flow, tried = sorted(stored_runs(store), key=lambda run: run.record.run_group)
    own = {"run_group", "run_id", "key", "started_at", "finished_at", "seconds", "ledger_head"}
    assert set(flow.record.model_dump()) == set(tried.record.model_dump())
    for name, value in flow.record.model_dump(exclude=own).items():
        if isinstance(value, str | int | bool):
            assert tried.record.model_dump()[name] == value, name
    assert files(store, "flow") == files(store, tried.record.run_group)
    output(capfd, "show", f"{tried.record.run_group}/diabetes/0")
    for command_of_group in ("verify", "report"):
        output(capfd, command_of_group, tried.record.run_group)


def files(store: Store, group: str) -> set[str]:
    root = store.local()
    assert root is not None
    found = {str(path.relative_to(root)).replace(group, "GROUP") for path in root.rglob("*") if path.is_file()}
    return {re.sub("[0-9.]+csv", "TIME.csv", path) for path in found if "GROUP" in path}


def test_ctrl_c_ends_a_trial_and_its_agent(tmp_path: Path, store: Store) -> None:
    write_agent(tmp_path / "agents" / "waits", "echo here I am; sleep 1000")
    terminal = Terminal("agent", "try", "waits")
    until(lambda: "here I am" in terminal.text(), seconds=120, what="the agent", may_yet=lambda: not terminal.ended())
    terminal.press_ctrl_c()
    until(terminal.ended, seconds=60, what="the end of the command")
    assert terminal.code == 130, terminal.text()
    until(lambda: "mlebench: stopped." in terminal.text(), what="the line that says how to go on")
    assert "Traceback" not in terminal.text()
    assert "was not made" not in terminal.text()
    until(lambda: not processes_of(tmp_path), seconds=30, what="the end of all that it had started")


def test_a_cancelled_trial_ends_as_cancelled(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_agent(tmp_path / "agents" / "waits", "echo here I am; sleep 1000")
    terminal = Terminal("agent", "try", "waits")
    until(lambda: "here I am" in terminal.text(), seconds=120, what="the agent", may_yet=lambda: not terminal.ended())
    (group,) = Store(str(tmp_path / "store")).folder_names("manifests")
    assert "1 cancelled" in output(capfd, "cancel", group)
    until(terminal.ended, seconds=60, what="the end of the command")
    assert terminal.code == 130
    assert "1 done, 1 cancelled" in terminal.text()


def test_a_trial_takes_the_options_of_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "diabetes" in output(capfd, "agent", "try", "dummy", "--dry-run")
    assert "No such option '--sed'" in output(capfd, "agent", "try", "dummy", "--sed", "1", code=2)
    said = output(capfd, "agent", "try", "dummy", "--seed", "3", "--run-group", "mine")
    assert "The end of its log" in said
    assert [(run.record.run_group, run.record.seed) for run in stored_runs(Store(str(tmp_path / "store")))] == [
        ("mine", 3)
    ]


def test_a_trial_of_a_competition_with_a_mistake_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "competitions"))
    get_settings.cache_clear()
    assert main(["new", "my-own", "--into", str(tmp_path / "competitions")]) == 0
    prepare = tmp_path / "competitions" / "my-own" / "prepare.py"
    text = prepare.read_text()
    head = text.index("def prepare(")
    body = text.index(":\n", text.index(")", head)) + 2
    prepare.write_text(f"{text[:body]}    raise KeyError('no such column')\n{text[body:]}")
    said = output(capfd, "agent", "try", "dummy", "-c", "my-own", code=1)
    line = text[:body].count("\n") + 1
    assert f"prepare.py:{line}" in said or f'prepare.py", line {line}' in said
