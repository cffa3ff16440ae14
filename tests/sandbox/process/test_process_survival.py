"""Orchestrators and supervisors that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from sandbox.backend import RunSpec
from sandbox.errors import BackendError, RunLost
from sandbox.process.backend import ProcessBackend
from sandbox.supervision import control
from tests import roots

WAITS_FOR_GO = 'echo started >>"$LOGS_DIR/starts"; echo waiting\nwhile [ ! -e go ]; do sleep 0.02; done\necho going\n'
HANDS_IN = 'printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'
ORCHESTRATOR = """
import sys
from pathlib import Path
from sandbox.agent_registry import load_agent
from sandbox.backend import RunSpec
from sandbox.limits import Limits
from sandbox.process.backend import ProcessBackend
from sandbox.rootless.backend import RootlessBackend

agent, data, workdir, end, scratch = sys.argv[1:]
backend = RootlessBackend(scratch=Path(scratch)) if scratch else ProcessBackend()
limits = Limits(time_limit_seconds=60, grace_seconds=0.5)
handle = backend.start(RunSpec("run", "competition", 3, load_agent(agent, [agent]), Path(data), Path(workdir), limits))
if end == "return":
    sys.exit()
if end == "raise":
    raise RuntimeError
backend.wait(handle, lambda line: print(line, flush=True))
"""


@pytest.fixture
def orchestrate(backend_name: str) -> Callable[..., subprocess.Popen[str]]:
    scratch = roots.scratch() if backend_name == "rootless" else ""
    return partial(_orchestrate, scratch)


def _orchestrate(scratch: Path | str, spec: RunSpec, end: str = "wait") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ORCHESTRATOR, spec.agent.folder, spec.data, spec.workdir, end, scratch],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def supervisor_of(workdir: Path) -> int:
    supervisor = control.read(control.Layout(workdir).supervisor, control.Supervisor)
    assert supervisor is not None
    return supervisor.pid


def test_an_orchestrator_that_was_killed_finds_its_run_again(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], orchestrate: Callable[..., subprocess.Popen[str]]
) -> None:
    spec = make_spec(WAITS_FOR_GO + HANDS_IN)
    with orchestrate(spec) as orchestrator:
        assert first_line(orchestrator) == "waiting"
        orchestrator.kill()
    handle = backend.start(spec)
    assert handle.attachment == "running"
    (spec.workdir / "home" / "go").touch()
    lines: list[str] = []
    result = backend.wait(handle, lines.append)
    assert (result.status, lines) == ("completed", ["going"])
    assert result.submission is not None
    assert (result.logs / "starts").read_text() == "started\n"


def test_a_run_that_finished_with_nobody_there_is_found(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], orchestrate: Callable[..., subprocess.Popen[str]]
) -> None:
    spec = make_spec(WAITS_FOR_GO + HANDS_IN)
    with orchestrate(spec) as orchestrator:
        assert first_line(orchestrator) == "waiting"
        supervisor = psutil.Process(supervisor_of(spec.workdir))
        orchestrator.kill()
    (spec.workdir / "home" / "go").touch()
    supervisor.wait(120)
    handle = backend.start(spec)
    assert handle.attachment == "finished"
    assert backend.wait(handle).submission is not None


@pytest.mark.parametrize("end", ["return", "raise"])
def test_an_orchestrator_that_ends_leaves_nothing_running(
    make_spec: Callable[..., RunSpec], living: Callable, end: str, orchestrate: Callable[..., subprocess.Popen[str]]
) -> None:
    spec = make_spec("sleep 1000")
    with orchestrate(spec, end) as orchestrator:
        orchestrator.wait(120)
    assert living(spec.workdir) == []
    outcome = control.read(control.Layout(spec.workdir).outcome, control.Outcome)
    assert outcome is not None
    assert outcome.status == "cancelled"


def test_ctrl_c_leaves_nothing_running(
    make_spec: Callable[..., RunSpec], living: Callable, orchestrate: Callable[..., subprocess.Popen[str]]
) -> None:
    spec = make_spec("echo waiting; sleep 1000")
    with orchestrate(spec) as orchestrator:
        assert first_line(orchestrator) == "waiting"
        orchestrator.send_signal(signal.SIGINT)
        orchestrator.wait(120)
    assert living(spec.workdir) == []


def test_a_supervisor_that_was_killed_is_noticed_and_the_run_begins_anew(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], watch: Callable, living: Callable
) -> None:
    spec = make_spec(HANDS_IN + "touch first\nsetsid sleep 1000 &\n" + WAITS_FOR_GO)
    handle = backend.start(spec)
    thread, results = watch(handle, "waiting")
    os.kill(supervisor_of(spec.workdir), signal.SIGKILL)
    thread.join()
    assert isinstance(results[0], RunLost)
    assert living(spec.workdir) == []
    (spec.workdir / "home" / "stale").touch()
    again = backend.start(spec)
    assert again.attachment == "new"
    assert not (spec.workdir / "home" / "stale").exists()
    (spec.workdir / "home" / "go").touch()
    assert backend.wait(again).status == "completed"


def test_both_killed_is_begun_anew_without_what_was_left(
    backend: ProcessBackend,
    make_spec: Callable[..., RunSpec],
    living: Callable,
    orchestrate: Callable[..., subprocess.Popen[str]],
) -> None:
    spec = make_spec("setsid sleep 1000 &\n" + WAITS_FOR_GO)
    with orchestrate(spec) as orchestrator:
        assert first_line(orchestrator) == "waiting"
        left = living(spec.workdir)
        assert left
        orchestrator.kill()
        orchestrator.wait()
        supervisor = psutil.Process(supervisor_of(spec.workdir))
        supervisor.kill()
        supervisor.wait(120)
    handle = backend.start(spec)
    assert handle.attachment == "new"
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)


def test_killed_while_laying_out_the_world_is_begun_anew(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec]
) -> None:
    spec = make_spec(HANDS_IN + 'ls "$DATA_DIR"')
    layout = control.Layout(spec.workdir)
    for folder in (layout.control, layout.home / "data", layout.harvested):
        folder.mkdir(parents=True)
    (layout.home / "data" / "half").write_text("of a fi")
    result = backend.wait(backend.start(spec))
    assert result.status == "completed"
    assert "half" not in (result.logs / "agent.log").read_text()


def test_a_supervisor_that_cannot_start_is_one_clear_line(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(BackendError, match="was not started") as caught:
        backend.start(make_spec("true"))
    assert "\n" not in str(caught.value)
