"""Two `mlebench run` of one run group at the same time, as on two hosts: each run is made once, and both end well."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.runs.evidence.verify import verify_run
from storage.runs.folders import stored_runs
from storage.tables import read_table
from tests.agents import noting, write_agent
from tests.flows.gates import Gate
from tests.prefect_home import make_home
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store
from tests.waiting import until

__all__ = ["base_image"]

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)


@contextlib.contextmanager
def command(host: Path, agent: Path, store: Store, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`mlebench run` on a "host": with a scratch directory and, unless one is `served`, a Prefect server of its own.

    It writes to `host`/out.
    """
    arguments = ["run", "-c", "digits", "--agent", str(agent), "--run-group", "group", "--store", store.root, *more]
    env = {
        **os.environ,
        "PREFECT_HOME": str(host / "prefect"),
        "MLEBENCH_SCRATCH": str(host / "s"),
        "MLEBENCH_AGENT_DIRS": json.dumps([str(agent.parent)]),
    }
    with (host / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *arguments], stdout=out, stderr=out, env=env, cwd=ROOT
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def hosts(tmp_path: Path, prefect_database: Path) -> tuple[Path, Path]:
    """The directories of two "hosts"."""
    for name in ("one", "two"):
        make_home(tmp_path / name / "prefect", prefect_database)
    return tmp_path / "one", tmp_path / "two"


def run_two(
    hosts: tuple[Path, Path],
    agent: Path,
    store: Store,
    started: Callable[[], int],
    let_go: Callable[[], Any],
    *more: str,
) -> None:
    """Start both; once both are at the run and its agent was started, let the agent end. Checks what is left."""
    with command(hosts[0], agent, store, *more) as first, command(hosts[1], agent, store, *more) as second:

        def alive() -> bool:
            return first.poll() is None and second.poll() is None

        def said() -> str:
            return "\n".join((host / "out").read_text() for host in hosts)

        try:
            until(
                lambda: all("digits seed 0: waiting" in (host / "out").read_text() for host in hosts),
                300,
                what="both at the run",
                may_yet=alive,
                pause=0.2,
            )
            until(started, 300, what="the agent", may_yet=alive, pause=0.2)
            assert alive()
        except AssertionError as error:
            raise AssertionError(said()) from error
        let_go()
        assert (first.wait(300), second.wait(300)) == (0, 0), said()
    assert started() <= 1, "one agent"
    (run,) = stored_runs(store, "group")
    assert verify_run(run.folder, None) == []
    assert list(read_table(store, "grades")["outcome"]) == ["valid"]


def test_on_processes(tmp_path: Path, hosts: tuple[Path, Path], store: Store) -> None:
    gate, starts = Gate(tmp_path / "gate"), tmp_path / "starts-digits"
    starts.touch()
    agent = write_agent(tmp_path / "agents" / "waits", noting(tmp_path, f"read line <{tmp_path / 'gate'}\n"))
    run_two(hosts, agent, store, lambda: len(starts.read_text().splitlines()), gate.open)
    assert starts.read_text() == "start\n"


@pytest.mark.service("docker")
@pytest.mark.usefixtures("base_image", "served")
def test_in_containers(tmp_path: Path, hosts: tuple[Path, Path], store: Store) -> None:
    script = 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done\n'
    agent = write_agent(tmp_path / "agents" / "waits", script, trusted=False)
    from sandbox.docker.engine import AGENT, connect, labelled

    seen: set[str] = set()

    def containers() -> list[Any]:
        found = connect().containers.list(filters=labelled(role=AGENT))
        here = [each for each in found if str(tmp_path) in json.dumps(each.labels)]
        seen.update(str(each.id) for each in here)
        return here

    def let_go() -> None:
        (one,) = containers()
        assert one.exec_run(["touch", "/tmp/go"]).exit_code == 0

    run_two(hosts, agent, store, lambda: len(containers()), let_go, "--backend", "docker")
    assert len(seen) == 1, "one container"
