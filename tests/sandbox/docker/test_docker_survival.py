"""Runs outlive their orchestrator; what nobody waits for is found.

Only tests of this file end orphans of the engine that all tests share: others would take theirs from them.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox.backend import RunSpec
from sandbox.definitions import BASE_IMAGE
from sandbox.docker import end_orphans, orphans, runs
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import connect
from sandbox.docker.watch import state
from sandbox.errors import BackendError, RunLost
from sandbox.host.folder import socket_folder
from sandbox.supervision.control import Layout
from tests.sandbox.docker.conftest import ROOT, Waiting, remains_of
from tests.waiting import until

pytestmark = pytest.mark.slow

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


def container_of(spec: RunSpec) -> Any:
    container = runs.find(connect(), spec.workdir)
    assert container is not None
    return container


def age_of(spec: RunSpec) -> float:
    """Seconds since the agent's container was started."""
    return (datetime.now(UTC) - state(container_of(spec)).started_at).total_seconds()


def test_an_orchestrator_that_was_killed_goes_on(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN + 'until [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done; echo done')
    killed(spec)
    handle = docker_backend.start(spec)
    assert handle.attachment == "running"
    (Layout(spec.workdir).home / "submission" / "go").touch()
    lines: list[str] = []
    result = docker_backend.wait(handle, lines.append)
    assert (result.status, lines) == ("completed", ["done"])
    assert (result.logs / "agent.log").read_text() == "begun\ndone\n"
    assert (result.logs / "starts").read_text() == "begun\n"
    assert result.submission is not None
    assert remains_of(handle.workdir) == []


def test_limits_count_from_the_real_start(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN + 'sleep 3; touch "$LOGS_DIR/later"; sleep 60', time_limit_seconds=6, grace_seconds=0.5)
    killed(spec)
    until((Layout(spec.workdir).home / "logs" / "later").exists)
    began = time.monotonic()
    result = docker_backend.wait(docker_backend.start(spec))
    assert result.status == "timeout"
    assert 6 <= result.duration_seconds < 30
    assert time.monotonic() - began < result.duration_seconds


def test_a_run_that_ended_meanwhile_is_collected(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    spec = docker_spec(HANDS_IN)
    killed(spec)
    container_of(spec).wait(timeout=120)
    result = docker_backend.wait(docker_backend.start(spec))
    assert (result.status, (result.logs / "starts").read_text()) == ("completed", "begun\n")


def test_what_nobody_waits_for_is_found_and_ended(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], killed: Callable
) -> None:
    """What has an orchestrator, or may get it back in time, is left alone."""
    over = docker_spec(HANDS_IN + 'until [ -e "$SUBMISSION_DIR/go" ]; do sleep 0.1; done', run_id="over")
    late = docker_spec(HANDS_IN + "sleep 600", run_id="late", time_limit_seconds=1)
    unknown, resumable, watched = (
        docker_spec(HANDS_IN + "sleep 600", run_id=name) for name in ("unknown", "resumable", "watched")
    )
    for spec in (over, late, unknown, resumable):
        killed(spec)
    (Layout(over.workdir).home / "submission" / "go").touch()
    shutil.rmtree(unknown.workdir)
    labels = runs.labels_of("torn", unknown.workdir.with_name("torn"), {"role": "agent"})
    connect().containers.create(BASE_IMAGE, labels=labels)  # killed in mid-launch
    handle = docker_backend.start(watched)
    waiting = Waiting(docker_backend, handle)
    waiting.until("begun")
    container_of(over).wait(timeout=120)
    until(lambda: age_of(late) > late.limits.time_limit_seconds)

    found = {orphan.workdir: orphan for orphan in orphans()}
    assert {workdir: found[workdir].reason for workdir in found if workdir.parent == watched.workdir.parent} == {
        over.workdir: "it has ended",
        late.workdir: "its time limit has passed",
        unknown.workdir: "its work directory has no record of it",
        unknown.workdir.with_name("torn"): "its work directory has no record of it",
    }
    assert (found[over.workdir].status, found[late.workdir].status) == ("exited", "running")
    assert over.run_id in str(found[over.workdir])

    ended = {orphan.workdir for orphan in end_orphans()}
    assert {over.workdir, late.workdir, unknown.workdir} <= ended
    assert not {resumable.workdir, watched.workdir} & ended
    assert [remains_of(spec.workdir) for spec in (over, late, unknown)] == [[], [], []]
    assert remains_of(unknown.workdir.with_name("torn")) == []
    assert [len(remains_of(spec.workdir)) for spec in (resumable, watched)] == [3, 3]

    for spec, status in ((over, "completed"), (late, "timeout")):  # no work is lost
        again = docker_backend.start(spec)
        result = docker_backend.wait(again)
        assert (again.attachment, result.status) == ("finished", status)
        assert result.submission is not None
        assert (result.logs / "agent.log").read_text() == "begun\n"
    handles = [handle, docker_backend.start(resumable)]
    assert handles[1].attachment == "running"
    for each in handles:
        docker_backend.stop(each)
    assert waiting.result().status == "cancelled"


def test_a_lost_run_that_nobody_waits_for_is_removed_without_an_outcome(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec("sleep 600")
    with DockerBackend() as first:
        handle = first.start(spec)
        first._release(Layout(spec.workdir))  # as if it was killed
        container_of(spec).kill()
    ended = [each for each in end_orphans() if each.workdir == spec.workdir]
    assert [each.reason for each in ended] == ["it has ended"]
    assert handle.attachment == "new"
    again = docker_backend.start(spec)
    assert again.attachment == "new"
    docker_backend.discard(again)


def test_two_orchestrators_do_not_share_a_run(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60")
    handle = docker_backend.start(spec)
    with DockerBackend() as other:
        for method in (other.start, other.service_addresses):
            with pytest.raises(BackendError, match="another process is waiting for run"):
                method(spec)
    docker_backend.discard(handle)
    assert remains_of(spec.workdir) == []


def test_a_container_removed_by_somebody_else(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60")
    handle = docker_backend.start(spec)
    container_of(spec).remove(force=True)
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
