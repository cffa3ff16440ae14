"""What enforces the limits of runs: a delegated cgroup where there is one; otherwise the supervisor, and prlimit."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from sandbox.limits import MIB, Limits
from sandbox.rootless import limits
from sandbox.rootless.limits import Group, delegated, enforcement

OWN = "user.slice/user@1000.service/app.slice/run-1.scope"


def cgroup(folder: Path, controllers: str = "cpu memory pids", enabled: str = "") -> Path:
    """A folder with the files of a cgroup."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text(enabled)
    (folder / "cgroup.procs").write_text("")
    return folder


@pytest.fixture
def delegates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What systemd says about units, as a file."""
    (tmp_path / "says").write_text("yes")
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\ncat {tmp_path}/says\n')
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "says"


def found(mount: Path, tmp_path: Path, own: str = f"/{OWN}") -> Path | None:
    (tmp_path / "cgroup").write_text(f"4:memory:/x\n0::{own}\n")
    return delegated(mount, tmp_path / "cgroup")


@pytest.mark.usefixtures("delegates")
def test_a_delegated_cgroup_is_used_with_its_processes_moved_out_of_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = cgroup(tmp_path / "mount" / OWN)
    assert found(tmp_path / "mount", tmp_path) == scope
    (scope / "cgroup.procs").write_text("11\n12\n")
    refused, write = [OSError(errno.EBUSY, "busy")], Path.write_text

    def written(path: Path, text: str, encoding: str | None = None) -> int:
        if path.name == "cgroup.subtree_control" and refused:  # as the kernel does while processes are in it
            raise refused.pop()
        with path.open("a") as file:
            return file.write(f"{text} ")

    monkeypatch.setattr(Path, "write_text", written)
    group = Group.create("x", Limits(memory_bytes=64 * MIB, processes=10, cpus=2), scope)
    group.enter()
    monkeypatch.setattr(Path, "write_text", write)
    assert {name: (group.path / name).read_text().split() for name in ("memory.max", "pids.max", "cgroup.procs")} == {
        "memory.max": [str(64 * MIB)],
        "pids.max": ["10"],
        "cgroup.procs": ["0"],
    }
    assert {*(scope / "mlebench/cgroup.procs").read_text().split()} == {"11", "12"}
    assert (scope / "cgroup.subtree_control").read_text() == "+cpu +memory +pids "
    assert enforcement(scope) == {"memory": "cgroup", "processes": "cgroup", "disk": "watched", "cores": "cgroup"}
    (group.path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.out_of_memory()
    (group.path / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")
    assert not group.out_of_memory()


@pytest.mark.usefixtures("delegates")
def test_a_cgroup_above_that_systemd_manages_is_not_used(tmp_path: Path) -> None:
    """In app.slice, whose limits the systemd of the user has enabled, runs would outlive the limits of their scope."""
    scope, slice_ = cgroup(tmp_path / "mount" / OWN), (tmp_path / "mount" / OWN).parent
    cgroup(slice_, enabled="memory pids")
    assert found(tmp_path / "mount", tmp_path) == scope
    cgroup(scope / "mlebench")
    assert found(tmp_path / "mount", tmp_path, f"/{OWN}/mlebench") == scope, "supervisors have been moved there"


def test_units_that_systemd_does_not_delegate_are_not_used(tmp_path: Path, delegates: Path) -> None:
    """It would disable the limits of runs, and end mlebench if a run has too much memory."""
    scope, service = cgroup(tmp_path / "mount" / OWN), cgroup(tmp_path / "mount/system.slice/worker.service")
    delegates.write_text("no")
    assert found(tmp_path / "mount", tmp_path) is None
    assert found(tmp_path / "mount", tmp_path, "/system.slice/worker.service") is None
    delegates.write_text("yes")
    assert found(tmp_path / "mount", tmp_path, "/system.slice/worker.service") == service
    options = "show --property=Delegate --value --"
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"--user {options} {scope.name}",
        *[f"{options} worker.service"] * 2,
    ]
    (tmp_path / "systemctl").unlink()
    job = cgroup(tmp_path / "mount/slurmstepd.scope/job_1/task_0")
    assert found(tmp_path / "mount", tmp_path, "/slurmstepd.scope/job_1/task_0") == job


def test_cgroups_of_supervisors_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # the kernel removes the files of a cgroup with it
    scope = cgroup(tmp_path / "scope", enabled="cpu memory pids")
    cgroup(scope / "mlebench-killed")
    runs = [Group.create(name, Limits(processes=10), scope) for name in ("first", "second")]
    assert {path.name for path in scope.iterdir() if path.is_dir()} == {"mlebench-first", "mlebench-second"}
    for run in runs:
        run.remove()
    assert not [path for path in scope.iterdir() if path.is_dir()]


def test_processor_time_is_limited_where_only_memory_and_processes_were(tmp_path: Path) -> None:
    scope = cgroup(tmp_path / "scope", enabled="memory pids")
    Group.create("x", Limits(processes=10), scope)
    assert (scope / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert enforcement(scope)["cores"] == "cgroup"


@pytest.mark.usefixtures("delegates")
@pytest.mark.parametrize("own", [f"/{OWN}", "/../other", "/gone"])
def test_without_delegation_there_is_none(tmp_path: Path, own: str) -> None:
    cgroup(tmp_path / "mount" / OWN, controllers="cpu pids")
    assert found(tmp_path / "mount", tmp_path, own) is None
    (tmp_path / "cgroup").write_text("4:memory:/x\n")
    assert delegated(tmp_path / "mount", tmp_path / "cgroup") is None
    assert delegated(tmp_path / "mount", tmp_path / "nothing") is None


def test_a_kernel_that_does_not_count_by_user_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for release, expected in (("4.18.0-553.el8", "watched"), ("5.14.0-1.el9", "rlimit"), ("6.8.0", "rlimit")):
        monkeypatch.setattr(os, "uname", lambda release=release: os.uname_result(("", "", release, "", "")))
        assert enforcement(None)["processes"] == expected


def bound_as_its_user(pid: int, wanted: Limits) -> None:
    if (child := os.fork()) == 0:
        try:
            if not os.getuid():
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            limits.bound(pid, wanted)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.service("rootless")
def test_the_kernel_bounds_the_processes_of_a_user_namespace_by_themselves() -> None:
    """However many the user has outside of it."""
    user = [] if os.getuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    fork = "read -r go; for n in $(seq 50); do sleep 10 & echo $n; done"
    options = ["--unshare-user", "--unshare-pid", "--disable-userns", "--die-with-parent", "--ro-bind", "/", "/"]
    command = [*user, "bwrap", *options, "--proc", "/proc", "--dev", "/dev", "sh", "-c", f"echo ready; {fork}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        for child in psutil.Process(process.pid).children(recursive=True):
            bound_as_its_user(child.pid, Limits(processes=20))
        process.stdin.write(b"go\n")
        process.stdin.flush()
        started = process.stdout.read().split()
        process.kill()
    assert 10 < len(started) < 20
