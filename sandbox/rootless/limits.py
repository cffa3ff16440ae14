"""How strictly the limits of a run hold without a container engine, and control groups where a user may make them.

Where this process is in a delegated cgroup v2 (``systemd-run --user --scope -p Delegate=yes``, or a unit with
``Delegate=yes``), every run gets a cgroup of its own below it, and the kernel enforces memory, processes and processor
time. Elsewhere the supervisor measures memory and ends a run that has too much, and ``prlimit`` bounds what a run can
do between two measurements. An ordinary user cannot set a quota, so disk usage is always measured.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.locks import acquire, locked
from sandbox.limits import Limits

Enforcement = Literal["cgroup", "rlimit", "watched", "affinity"]
"""cgroup: by the kernel, for all processes of the run together. rlimit: by the kernel, for the user namespace of the
run (processes, counted with their threads). watched: the supervisor measures several times a second, and ends the run.
affinity: the run begins on its cores, but a process can choose others."""

MOUNT = Path("/sys/fs/cgroup")
NEEDED = frozenset({"memory", "pids"})
SUPERVISORS = "mlebench"
"""The cgroup for processes that are not agents: one with limits for cgroups below it has no processes of its own."""
PREFIX = f"{SUPERVISORS}-"
"""Of the names of the cgroups of runs."""
PROCESSES = "cgroup.procs"
UNITS = {".scope", ".service"}
SECONDS = 30.0
ATTEMPTS = 5
CPU_PERIOD = 100_000  # microseconds
NAMESPACE_RLIMITS = (5, 14)
"""The version of Linux since which RLIMIT_NPROC counts the processes of a user namespace by themselves."""


def enforcement(group: Path | None) -> dict[str, Enforcement]:
    """What enforces each limit of runs that this process starts.

    Args:
        group: from `delegated`.
    """
    if group is not None:
        has_cpu = "cpu" in _words(group / "cgroup.controllers")
        return {
            "memory": "cgroup",
            "processes": "cgroup",
            "disk": "watched",
            "cores": "cgroup" if has_cpu else "affinity",
        }
    counted = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= NAMESPACE_RLIMITS
    return {
        "memory": "watched",
        "processes": "rlimit" if counted else "watched",
        "disk": "watched",
        "cores": "affinity",
    }


def delegated(mount: Path = MOUNT, cgroups: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The cgroup v2 below which this process may make cgroups with limits for its runs; None if there is none.

    Args:
        mount: where cgroup v2 is mounted.
        cgroups: the cgroups of this process.
    """
    try:
        lines = cgroups.read_text("utf-8").splitlines()
    except OSError:
        return None
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if own is None or "/.." in own:  # not in v2, or in a cgroup that is not visible here
        return None
    path = mount / own.lstrip("/")
    if path.name == SUPERVISORS:  # where `_enable` has moved this process
        path = path.parent
    elif path.suffix in UNITS and not _systemd_delegates(path):
        return None
    # Never one further up that has limits enabled, as app.slice has: it is systemd's.
    may_write = all(os.access(path / file, os.W_OK) for file in (".", PROCESSES, "cgroup.subtree_control"))
    return path if may_write and _words(path / "cgroup.controllers") >= NEEDED else None


def _systemd_delegates(unit: Path) -> bool:
    """Whether systemd leaves to us what is in the cgroup of a unit.

    Elsewhere, it disables limits that it did not enable, and ends the whole unit if one run has too much memory.
    """
    manager = ["--user"] if any(part.startswith("user@") for part in unit.parent.parts) else []
    command = ["systemctl", *manager, "show", "--property=Delegate", "--value", "--", unit.name]
    env = {"XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}", **os.environ}
    try:
        asked = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):  # no systemd that could be asked
        return False
    return asked.stdout.strip() == "yes"


@dataclass(frozen=True)
class Group:
    """The cgroup of one run."""

    path: Path
    lock: int | None = None
    """Held while the supervisor lives. A cgroup without it was left by one that was killed."""

    @classmethod
    def create(cls, name: str, limits: Limits, parent: Path) -> Group:
        """Make the cgroup of a run, without processes, and remove those of supervisors that were killed.

        Args:
            name: a name that no other run on this machine has.
            limits: limits of the run.
            parent: from `delegated`.

        Raises:
            OSError: it cannot be made.
        """
        with locked(parent / PROCESSES, wait=True):  # other supervisors do the same
            _enable(parent)
            for left in parent.glob(f"{PREFIX}*"):
                with contextlib.suppress(OSError):  # its supervisor is removing it
                    if (lock := acquire(left / PROCESSES)) is not None:
                        cls(left, lock).remove()
            path = parent / f"{PREFIX}{name}"
            path.mkdir()
            group = cls(path, acquire(path / PROCESSES))
        values = {"pids.max": limits.processes, "memory.max": limits.memory_bytes}
        if limits.memory_bytes:
            values |= {"memory.swap.max": 0, "memory.oom.group": 1}
        for file, value in values.items():
            if value is not None and (value or (group.path / file).exists()):  # kernels without swap lack that file
                (group.path / file).write_text(f"{value}", "utf-8")
        if limits.cpus and (group.path / "cpu.max").exists():
            (group.path / "cpu.max").write_text(f"{limits.cpus * CPU_PERIOD} {CPU_PERIOD}", "utf-8")
        return group

    def enter(self) -> None:
        """Move this process into it, and so everything that it will start. Raises `OSError` if it may not."""
        (self.path / PROCESSES).write_text("0", "utf-8")

    def out_of_memory(self) -> bool:
        """Whether the kernel has ended a process because the run had more memory than its limit."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self.path / "memory.events").read_text("utf-8").splitlines():
                event, number = line.split()
                if event == "oom_kill" and int(number):
                    return True
        return False

    def kill(self) -> None:
        """End all its processes (Linux 5.14 and later; no error elsewhere)."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1", "utf-8")

    def remove(self) -> None:
        """Remove it once its processes have ended; no error if it cannot be removed."""
        self.kill()
        for _ in range(ATTEMPTS):
            try:
                self.path.rmdir()
            except FileNotFoundError:
                break
            except OSError:  # the processes are still ending
                os.sched_yield()
        if self.lock is not None:
            os.close(self.lock)


def bound(pid: int, limits: Limits) -> None:
    """Bound a process that is alone in a new user namespace, and everything that it will start.

    Neither bound is the limit of the run: memory is counted for each process, as what it has asked for, and processes
    are counted with their threads. They keep a run from taking the machine down between two measurements.

    Args:
        pid: the process, or 0 for this one.
        limits: limits of the run.

    Raises:
        OSError: the process has ended, or belongs to somebody else.
    """
    bounds = {resource.RLIMIT_NPROC: limits.processes, resource.RLIMIT_DATA: 2 * (limits.memory_bytes or 0)}
    for kind, value in bounds.items():
        if value:
            hard = resource.prlimit(pid, kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (value, value))


def _enable(parent: Path) -> None:
    """Let the cgroups below one have limits, after moving its processes out of it."""
    wanted = sorted((NEEDED | {"cpu"}) & _words(parent / "cgroup.controllers"))
    if _words(parent / "cgroup.subtree_control").issuperset(wanted):
        return
    leaf = parent / SUPERVISORS
    leaf.mkdir(exist_ok=True)
    for attempt in range(ATTEMPTS):
        for pid in _words(parent / PROCESSES):
            with contextlib.suppress(ProcessLookupError):
                (leaf / PROCESSES).write_text(pid, "utf-8")
        try:
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted), "utf-8")
        except OSError:  # a process has started in it meanwhile
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def _words(file: Path) -> set[str]:
    """The words of a file of a cgroup; none if it does not exist."""
    try:
        return set(file.read_text("utf-8").split())
    except OSError:
        return set()
