"""Runs outlive their orchestrator; what nobody waits for is found."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.backend import RunSpec
from sandbox.docker import end_orphans, orphans, runs
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import connect
from sandbox.docker.network import socket_folder
from sandbox.errors import BackendError, RunLost
from tests.sandbox.docker.conftest import ROOT, Waiting, left_of

HANDS_IN = 'echo begun >>"$LOGS_DIR/starts"; echo begun; printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'


@pytest.fixture
def killed(tmp_path: Path) -> Callable[[RunSpec], None]:
    """Start a run in a process of its own, and kill that once the agent says that it has begun."""

    def start_and_kill(spec: RunSpec) -> None:
        (tmp_path / "spec").write_bytes(pickle.dumps(spec))
        command = [sys.executable, "-m", "tests.sandbox.docker.orchestrator", str(tmp_path / "spec")]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        while (line := process.stdout.readline()) and line != "begun\n":
            pass
        process.kill()
        process.wait()

    return start_and_kill


def test_an_orchestrator_that_was_killed_goes_on(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 4; echo done")
    killed(spec)
    handle = docker_backend.start(spec)
    assert handle.attachment == "running"
    lines: list[str] = []
    result = docker_backend.wait(handle, lines.append)
    assert (result.status, lines) == ("completed", ["done"])
    assert (result.logs / "agent.log").read_text() == "begun\ndone\n"
    assert (result.logs / "starts").read_text() == "begun\n"
    assert result.submission is not None
    assert left_of(handle.workdir) == []


def test_limits_count_from_the_real_start(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60", time_limit_seconds=6, grace_seconds=0.5)
    killed(spec)
    time.sleep(3)
    began = time.monotonic()
    result = docker_backend.wait(docker_backend.start(spec))
    assert result.status == "timeout"
    assert 6 <= result.duration_seconds < 12
    assert time.monotonic() - began < result.duration_seconds


def test_a_run_that_ended_meanwhile_is_collected(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN)
    killed(spec)
    time.sleep(1)
    result = docker_backend.wait(docker_backend.start(spec))
    assert (result.status, (result.logs / "starts").read_text()) == ("completed", "begun\n")


def test_what_nobody_waits_for_is_found_and_ended(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    lost, watched = docker_spec(HANDS_IN + "sleep 60"), docker_spec(HANDS_IN + "sleep 60", run_id="other")
    killed(lost)
    handle = docker_backend.start(watched)
    waiting = Waiting(docker_backend, handle)
    waiting.until("begun")
    found = {orphan.workdir: orphan for orphan in orphans()}
    assert found[lost.workdir].run_id == lost.run_id
    assert found[lost.workdir].status == "running"
    assert watched.workdir not in found
    assert lost.run_id in str(found[lost.workdir])
    assert lost.workdir in [orphan.workdir for orphan in end_orphans()]
    assert left_of(lost.workdir) == []
    assert len(left_of(watched.workdir)) == 3
    docker_backend.stop(handle)
    waiting.result()


def test_two_orchestrators_do_not_share_a_run(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60")
    handle = docker_backend.start(spec)
    with DockerBackend() as other:
        for method in (other.start, other.reach):
            with pytest.raises(BackendError, match="another process waits for run"):
                method(spec)
    docker_backend.discard(handle)
    assert left_of(spec.workdir) == []


def test_a_container_removed_by_somebody_else(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60")
    handle = docker_backend.start(spec)
    runs.find(connect(), spec.workdir).remove(force=True)  # type: ignore[union-attr]
    with pytest.raises(RunLost, match="start the run again"):
        docker_backend.wait(handle)
    assert docker_backend.start(spec).attachment == "new"
    docker_backend.close()


def test_the_sockets_lie_in_a_directory_of_our_own(tmp_path: Path) -> None:
    folder = socket_folder(tmp_path / "run")
    assert folder == socket_folder(tmp_path / "run")
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert len(str(folder / "validation.sock")) < 100
    folder.rmdir()
