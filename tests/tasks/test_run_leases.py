"""Several orchestrators make the runs of one group: each run is made once, and nobody's result is lost or mixed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder, stored_runs
from storage.store import Store
from tasks.split import split_dataset
from tests.bundles import bundle
from tests.flows.gates import Gate
from tests.s3.fixtures import Bucket
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
IDS = ("breast-cancer", "diabetes", "digits")
ORCHESTRATOR = """
import functools, json, sys
from concurrent.futures import ThreadPoolExecutor
import tasks.agent_run as step
from tasks.wiring.attempts import attempts_of
from common.progress import Event, listening
from storage.lease import lease
from tasks.wiring.context import RunContext
from tasks.wiring.requests import RunRequest
step.lease = functools.partial(lease, stale_after=float(sys.argv[2]))
def show(event):
    # One write a line: `print` makes several, and those of two threads get mixed up.
    sys.stdout.write(f"{event.row}|{event.state}|{event.detail}\\n")
    sys.stdout.flush()
def run(attempt):
    with listening(show):
        return step.run_agent(attempt)
request = RunRequest.model_validate(json.loads(sys.argv[1]))
attempts = [each for name in sys.argv[3:] for each in attempts_of(RunContext.of(request), name)]
with ThreadPoolExecutor(len(attempts)) as pool:
    for status in pool.map(run, attempts):
        assert status == "completed", status
"""


class World:
    """A store with prepared competitions, and an agent that notes that it was started, and waits for a gate."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.begun, self.gate = folder / "begun", Gate(folder / "gate")
        self.begun.touch()
        agent = folder / "agents" / "noting"
        agent.mkdir(parents=True)
        (agent / "agent.yaml").write_text("name: noting\ndescription: notes its start\ntrusted: true\n")
        (agent / "start.sh").write_text(
            f"#!/bin/sh\necho $COMPETITION_ID $SEED >>{self.begun}\nread line <{folder / 'gate'}\n"
            'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n'
        )

    def prepare(self, *ids: str) -> None:
        for name in ids:
            self.store.write(self.store.raw(name), bundle(name))
            split_dataset(name, self.store.root, "v1", "hash")

    @contextmanager
    def orchestrator(
        self, host: str, ids: tuple[str, ...], seeds: int = 1, stale_after: float = 60
    ) -> Iterator[subprocess.Popen[str]]:
        """A process that makes the runs, on a "host" with a scratch directory of its own."""
        request = {"agent": "noting", "run_group": "group", "store": self.store.root, "seeds": seeds}
        env = {
            **os.environ,
            "MLEBENCH_SCRATCH": str(self.folder / host),
            "MLEBENCH_AGENT_DIRS": json.dumps([str(self.folder / "agents")]),
            "MLEBENCH_AGENTS": "8",
            "MLEBENCH_HOST_NAME": f"{self.folder.name}-{host}",
        }
        command = [sys.executable, "-c", ORCHESTRATOR, json.dumps(request), str(stale_after), *ids]
        with (
            (self.folder / f"{host}.out").open("w") as out,
            subprocess.Popen(command, stdout=out, stderr=out, text=True, cwd=ROOT, env=env) as process,
        ):
            try:
                yield process
            finally:
                process.send_signal(signal.SIGCONT)
                process.terminate()

    def said(self, host: str) -> list[str]:
        return (self.folder / f"{host}.out").read_text().splitlines()

    def waiting(self, host: str) -> set[str]:
        """The runs whose result an orchestrator waits for."""
        return {line.split("|")[0] for line in self.said(host) if "|waiting|for another process" in line}

    def starts(self) -> list[str]:
        return sorted(self.begun.read_text().splitlines())

    def require_whole(self, count: int) -> None:
        """Every run has a record, and its files are those that the record's evidence lists."""
        runs = stored_runs(self.store, "group")
        assert len(runs) == count
        for run in runs:
            assert verify_run(run.folder, None) == []


@pytest.fixture
def on_disk(tmp_path: Path) -> World:
    return World(Store(str(tmp_path / "store")), tmp_path)


def test_two_orchestrators_of_a_group_make_each_run_once(on_disk: World) -> None:
    require_each_run_once(on_disk)


def test_two_orchestrators_of_a_group_make_each_run_once_in_a_bucket(s3: Bucket, tmp_path: Path) -> None:
    require_each_run_once(World(Store(s3.url), tmp_path))


def require_each_run_once(world: World) -> None:
    world.prepare(*IDS)
    expected = sorted(f"{name} {seed}" for name in IDS for seed in range(2))
    with world.orchestrator("one", IDS, seeds=2) as first, world.orchestrator("two", IDS, seeds=2) as second:
        until(lambda: len(world.starts()) == 6, what="six agents", may_yet=lambda: _alive(first, second))
        until(lambda: len(world.waiting("one") | world.waiting("two")) == 6, may_yet=lambda: _alive(first, second))
        for _ in expected:
            world.gate.open()
        assert first.wait() == 0, "\n".join(world.said("one"))
        assert second.wait() == 0, "\n".join(world.said("two"))
    assert world.starts() == expected
    world.require_whole(6)


def _alive(*processes: subprocess.Popen[str]) -> bool:
    return all(process.poll() in (None, 0) for process in processes)


def test_who_was_stopped_meanwhile_overwrites_nothing(on_disk: World) -> None:
    world = on_disk
    world.prepare("diabetes")
    with world.orchestrator("one", ("diabetes",)) as first:
        until(lambda: len(world.starts()) == 1, what="the first agent", may_yet=lambda: _alive(first))
        first.send_signal(signal.SIGSTOP)
        with world.orchestrator("two", ("diabetes",), stale_after=1) as second:
            until(lambda: len(world.starts()) == 2, what="the second agent", may_yet=lambda: _alive(second))
            world.gate.open()
            world.gate.open()
            assert second.wait() == 0, "\n".join(world.said("two"))
        (before,) = stored_runs(world.store, "group")
        files = {path: path.read_bytes() for path in (world.folder / "store" / "runs").rglob("*") if path.is_file()}
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 1
        assert "LeaseLost: run/group/diabetes/0: another process took over" in "\n".join(world.said("one"))
    assert files == {path: path.read_bytes() for path in (world.folder / "store" / "runs").rglob("*") if path.is_file()}
    assert stored_runs(world.store, "group") == [before]
    world.require_whole(1)


def test_the_run_of_a_killed_orchestrator_is_continued_by_the_next(on_disk: World) -> None:
    world = on_disk
    world.prepare("diabetes")
    with world.orchestrator("one", ("diabetes",)) as first:
        until(lambda: len(world.starts()) == 1, what="the agent", may_yet=lambda: _alive(first))
        first.kill()
        first.wait()
    with world.orchestrator("one", ("diabetes",)) as second:
        world.gate.open()
        assert second.wait() == 0, "\n".join(world.said("one"))
    assert world.starts() == ["diabetes 0"], "the next one finds the agent running"
    world.require_whole(1)
    folder = RunFolder(world.store, "group", "diabetes", 0)
    assert world.store.exists(f"{folder.url}/submission.csv"), "nobody else can have been writing there"
