"""Runs in progress, seen from another terminal: `mlebench ls` and `show` know them, and `cancel` ends them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.runs.folders import RunFolder
from tests import roots, services
from tests.agents import write_agent
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store
from tests.waiting import until

__all__ = ["base_image"]

ROOT = Path(__file__).parents[2]
SCRIPT = 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\necho handed in\nsleep 1000\n'


@pytest.fixture(params=services.BACKENDS)
def running(
    request: pytest.FixtureRequest,
    store: Store,
    tmp_path: Path,
    served: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[subprocess.Popen[str]]:
    """Six runs of a group with two slots: two agents run, the others wait."""
    if request.param == "docker":
        request.getfixturevalue("base_image")
    if request.param == "rootless":
        roots.lend(get_settings().scratch)
    # Its slots are those of nobody else on this machine, such as of another run of these tests.
    monkeypatch.setenv("MLEBENCH_HOST_NAME", f"host-{uuid.uuid4().hex}")
    get_settings.cache_clear()
    agent = write_agent(tmp_path / "sleeps", SCRIPT)
    arguments = ["run", "-c", "diabetes", "--agent", str(agent), "--run-group", "live", "--seeds", "6", "--agents", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *arguments, "--store", store.root, "--backend", request.param],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=dict(os.environ),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def rows(store: Store, capfd: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """The lines of `mlebench ls live`, by run; none while there is nothing to list."""
    capfd.readouterr()
    if main(["ls", "live", "--store", store.root]) != 0:
        return {}
    return {line.split()[0]: line.split()[1:] for line in capfd.readouterr().out.splitlines()[1:]}


def test_runs_in_progress_are_listed_shown_and_cancelled(
    store: Store, running: subprocess.Popen[str], capfd: pytest.CaptureFixture[str]
) -> None:
    def states() -> list[str]:
        return sorted(cells[0] for cells in rows(store, capfd).values())

    begun = ["running"] * 2 + ["waiting"] * 4  # also those that have no place in the queue for slots yet
    until(lambda: states() == begun, 200, may_yet=lambda: running.poll() is None, pause=0.5)
    assert all(get_settings().host_name in cells for cells in rows(store, capfd).values())
    assert main(["ls", "--store", store.root]) == 0
    assert "2 running, 4 waiting" in capfd.readouterr().out
    assert main(["show", "live/diabetes/5", "--store", store.root]) == 0
    assert "status              waiting" in capfd.readouterr().out
    first = next(name for name, cells in rows(store, capfd).items() if cells[0] == "running")
    assert main(["show", first, "--store", store.root]) == 0
    shown = capfd.readouterr().out
    assert "status              running" in shown
    assert "elapsed             " in shown
    assert f"mlebench cancel {first} --store {store.local()}" in shown

    def logged() -> str:
        capfd.readouterr()
        main(["logs", first, "--store", store.root])
        return capfd.readouterr().out

    until(lambda: "handed in" in logged(), 200, what="a slot is taken a while before the agent begins", pause=0.5)

    # One run is cancelled: what it handed in is kept, and the one that waited takes its place.
    assert main(["cancel", first, "--store", store.root]) == 0
    assert "1 cancelled, 0 not confirmed" in capfd.readouterr().out
    seed = int(first.rsplit("/", 1)[1])
    record = until(RunFolder(store, "live", "diabetes", seed).read_run, what="the record of the cancelled run")
    assert (record.status, record.submission_exists) == ("cancelled", True)
    until(lambda: states() == ["cancelled", "running", "running", *["waiting"] * 3], 100, pause=0.5)

    # One that waits is cancelled before it has begun.
    assert main(["cancel", "live/diabetes/5", "--store", store.root, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"cancelled": ["diabetes seed 5"], "not_confirmed": []}

    left = [name.replace("/", " seed ") for name in sorted(each.removeprefix("live/") for each in rows(store, capfd))]
    assert main(["cancel", "live", "--dry-run", "--store", store.root]) == 0
    said = capfd.readouterr().out
    assert set(re.findall("would cancel (.*)", said)) <= set(left)
    assert said.count("would cancel") == 5
    assert states().count("running") == 2, "nothing was cancelled"

    # Then all of them: the command ends by itself, and says what happened.
    assert main(["cancel", "live", "--store", store.root]) == 0
    assert "5 cancelled, 0 not confirmed" in capfd.readouterr().out
    output, _ = running.communicate(timeout=200)
    assert running.returncode == 130, "it was cancelled, which is no failure"
    assert output.count("cancelled by a user") >= 6, output
    assert set(states()) == {"cancelled"}, "what waited was not begun"
    assert len(states()) <= 3
    assert main(["cancel", "live", "--store", store.root]) == 1
    assert "in progress on this machine" in capfd.readouterr().err


@pytest.mark.parametrize("runs", ["live/diabetes/x", "live/diabetes/0/1", "../up"])
def test_a_wrong_name_is_one_line(runs: str, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cancel", runs, "--store", store.root]) == 2
    assert capfd.readouterr().err.count("\n") == 1
