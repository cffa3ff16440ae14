"""Running on after the end, and taking back a run that went badly."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ByteSize

from sandbox.backend import RunSpec
from sandbox.docker import containers, runs, watch
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import BACKSTOP, ROLE, EngineUnreachable, connect
from sandbox.supervision import control, endings
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile, layout_of, python
from tests.sandbox.docker.conftest import Relay, Waiting
from tests.waiting import until

ORCHESTRATOR = """
import pickle, sys
from pathlib import Path
from sandbox.docker import containers
from sandbox.docker.backend import DockerBackend
containers.BACKSTOP_SECONDS = 1.0
backend = DockerBackend()
handle = backend.start(pickle.loads(Path(sys.argv[1]).read_bytes()))
backend.wait(handle, lambda line: print(line, flush=True))
"""
DIES_EARLY = """
import os
from docker.models.containers import Container
start = Container.start

def start_and_die(container):
    start(container)
    if container.labels.get("mlebench.role") == "agent":
        os.kill(os.getpid(), 9)

Container.start = start_and_die
"""

STOP_EVERYTHING = """
    import os, signal
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            try:
                os.kill(int(pid), signal.SIGSTOP)
            except OSError:
                pass
    print("stopped", flush=True)
    signal.pause()
"""


def test_stopping_the_timer_while_the_orchestrator_is_dead(contained: Hostile, tmp_path: Path) -> None:
    spec = contained.spec(python(STOP_EVERYTHING), time_limit_seconds=1, grace_seconds=0)
    (tmp_path / "spec").write_bytes(pickle.dumps(spec))
    with subprocess.Popen(
        [sys.executable, "-c", ORCHESTRATOR, str(tmp_path / "spec")], stdout=subprocess.PIPE, text=True
    ) as orchestrator:
        assert orchestrator.stdout is not None
        for line in orchestrator.stdout:
            if line == "stopped\n":
                break
        orchestrator.kill()
    both_end(spec)
    assert contained.finish(spec).result.status == "timeout"


def both_end(spec: RunSpec) -> None:
    """Wait until the agent's container has ended, and its backstop after it.

    The run is claimed meanwhile: it has no orchestrator, and other tests on this engine end the runs of dead ones.
    """
    client = connect()
    label: dict[str, str | list[str] | bool] = {"label": f"mlebench.workdir={spec.workdir}"}
    with runs.unclaimed(control.Layout(spec.workdir)) as free:
        assert free, "its orchestrator still has the run"
        agent, backstop = (
            next(each for each in client.containers.list(all=True, filters=label) if each.labels[ROLE] == role)
            for role in ("agent", BACKSTOP)
        )
        for each in (agent, backstop):

            def ended(container: Any = each) -> bool:
                container.reload()
                return bool(container.status == "exited")

            until(ended, 60, what=f"the end of {each.name}")


def test_an_orchestrator_that_dies_in_the_moment_of_the_start(contained: Hostile, tmp_path: Path) -> None:
    """The backstop is there before the agent."""
    spec = contained.spec(python(STOP_EVERYTHING), time_limit_seconds=2, grace_seconds=0)
    (tmp_path / "spec").write_bytes(pickle.dumps(spec))
    done = subprocess.run([sys.executable, "-c", DIES_EARLY + ORCHESTRATOR, str(tmp_path / "spec")], check=False)
    assert done.returncode == -signal.SIGKILL
    both_end(spec)


def test_the_backstop_cannot_be_seen_or_signalled(contained: Hostile) -> None:
    done = contained.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[b]ackstop'; kill -9 -1 2>/dev/null; true")
    assert "1" not in done.lines


def test_a_backstop_never_ends_a_process_that_got_the_same_id() -> None:
    """It compares the control group: the id of an agent that has ended may belong to another process."""
    from sandbox.docker import backstop

    with subprocess.Popen(["sleep", "1000"]) as stranger:
        program = backstop._PROGRAM.replace("first=;", f"first={stranger.pid};")
        assert program != backstop._PROGRAM
        subprocess.run(["sh", "-c", program, "backstop", "f" * 64, "0", "0"], check=True)
        assert stranger.poll() is None
        stranger.kill()


def test_failing_to_collect_does_not_take_the_run_back(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with an agent's files: there is a record, and the same command does not begin anew."""
    if not hostile.contained:
        pytest.skip("the supervisor of the process backend is another process")

    def fail(*_: object) -> None:
        raise ValueError("embedded null byte")

    monkeypatch.setattr(endings, "harvest", fail)
    spec = hostile.spec(HANDS_IN + "exit 3")
    done = hostile.finish(spec)
    assert done.result.status == "crashed"
    assert "its files could not all be collected (embedded null byte)" in str(done.result.message)
    assert hostile.backend.start(spec).attachment == "finished"


def test_an_interrupted_collection_is_continued(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hostile.contained:
        pytest.skip("the supervisor of the process backend is another process")
    original = control.write

    def fail(path: Path, record: object) -> None:
        if path.name == "outcome.json":
            raise OSError(5, "Input/output error")
        original(path, record)  # type: ignore[arg-type]

    spec = hostile.spec(HANDS_IN + 'echo x >"$CODE_DIR/x"; echo once')
    with monkeypatch.context() as patched:
        patched.setattr(control, "write", fail)
        handle = hostile.backend.start(spec)
        with pytest.raises(OSError, match="Input/output error"):
            hostile.backend.wait(handle)
    again = hostile.backend.start(spec)
    assert again.attachment == "running"
    result = hostile.backend.wait(again)
    assert (result.status, result.submission is not None) == ("completed", True)
    assert (result.logs / "agent.log").read_text() == "once\n"
    assert (result.code / "x").read_text() == "x\n"


def test_a_disk_that_is_full_when_the_outcome_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    full = iter([True, True, False, False])
    monkeypatch.setattr(endings.time, "sleep", lambda _: None)

    def write() -> str:
        if next(full):
            raise OSError(errno.ENOSPC, "No space left on device")
        return "written"

    assert endings._with_space(write) == "written"


def test_leaving_with_an_empty_environment(hostile: Hostile) -> None:
    """The supervisor adopts every descendant, whatever is in its environment."""
    code = """
        import os, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 3)
                os.execve("/bin/sleep", ["sleep", "4711.5"], {})
    """
    import psutil

    done = hostile.run(HANDS_IN + python(code))
    assert done.result.status == "completed"
    assert not [each for each in psutil.process_iter(["cmdline"]) if "4711.5" in (each.info["cmdline"] or ())]
    assert not layout_of(done).home.exists()


def test_limits_above_those_of_the_operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from common.settings import Settings
    from sandbox.agent_registry import load_agent
    from sandbox.limits import GIB, Limits
    from storage.store import Store
    from tasks.wiring.context import RunContext
    from tasks.wiring.requests import RunRequest

    (tmp_path / "greedy").mkdir()
    (tmp_path / "greedy" / "start.sh").touch()
    (tmp_path / "greedy" / "agent.yaml").write_text(
        "description: x\nlimits: {memory_bytes: null, disk_bytes: null, cpus: null, processes: null, gpus: 64,"
        " time_limit_seconds: 1.0e9, grace_seconds: 1.0e9, log_bytes: 1000000000000, snapshots: 1000000,"
        " snapshot_bytes: 1000000000000, submission_bytes: 1000000000000, collected_bytes: 1000000000000,"
        " collected_files: 1000000000, free_bytes: 1, shm_bytes: 1000000000000}\n"
    )
    agent = load_agent(tmp_path / "greedy")
    settings = Settings(
        scratch=tmp_path,
        agent_memory=ByteSize(GIB),
        agent_cpus=2,
        agent_disk=ByteSize(5 * GIB),
        agent_gpus=1,
        agent_processes=100,
    )
    store = Store(tmp_path.as_uri())
    request = RunRequest(agent=str(tmp_path / "greedy"), run_group="g", store=store.root)
    found = RunContext(request, settings, store, agent).limits
    assert (found.memory_bytes, found.cpus, found.disk_bytes, found.gpus, found.processes) == (GIB, 2, 5 * GIB, 1, 100)
    assert (found.time_limit_seconds, found.grace_seconds, found.shm_bytes) == (24 * 3600.0, 60.0, GIB)
    assert found.free_bytes == settings.free_disk
    defaults = Limits()
    assert found.log_bytes <= 100 * defaults.log_bytes
    assert max(found.snapshot_bytes, found.submission_bytes, found.collected_bytes) <= 20 * GIB
    flagged = RunRequest(**{**request.model_dump(), "max_memory": 1000, "max_cpus": 1, "max_disk": 10**15})
    found = RunContext(flagged, settings, store, agent).limits
    assert (found.memory_bytes, found.cpus, found.disk_bytes) == (1000, 1, 5 * GIB)
    machine = RunContext(request, Settings(scratch=tmp_path), store, agent).limits
    assert machine.memory_bytes
    assert machine.disk_bytes
    assert machine.cpus
    assert containers.BACKSTOP_SECONDS > 0


def test_an_outage_of_the_engine(contained: Hostile, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can make the engine fail does not get a second attempt: the run is found where it was."""
    monkeypatch.setattr(watch, "ENGINE_SECONDS", 1.0)
    script = 'echo begun >>"$LOGS_DIR/starts"; echo begun; until [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done\n'
    spec = contained.spec(script + HANDS_IN)
    with DockerBackend(client=relay.client()) as backend:
        waiting = Waiting(backend, backend.start(spec))
        waiting.until("begun")
        relay.close()
        with pytest.raises(EngineUnreachable):
            waiting.result()
        with pytest.raises(EngineUnreachable):  # rather than a new start
            backend.start(spec)
        relay.open()
        handle = backend.start(spec)
        assert handle.attachment == "running"
        (control.Layout(spec.workdir).home / "submission" / "go").touch()
        result = backend.wait(handle)
    assert (result.status, result.submission is not None) == ("completed", True)
    assert (result.logs / "starts").read_text() == "begun\n"
