"""Start the agent as a child of its supervisor, with the limits that the kernel enforces."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Collection
from pathlib import Path

from sandbox.limits import Limits
from sandbox.process import processes
from sandbox.supervision import control

NICENESS = 5


def start_agent(
    launch_spec: control.LaunchSpec,
    home: Path,
    limits: Limits,
    *,
    inherited: Collection[int] = (),
    become: Callable[[], None] = lambda: None,
) -> tuple[int, int]:
    """Fork, and execute the agent in the child. The calling process must have only one thread.

    Args:
        launch_spec: the command, its environment and its CPU cores.
        home: working directory of the agent.
        limits: limits of the run; the kernel enforces the size of a single file.
        inherited: descriptors that the command gets.
        become: called in the child before the command.

    Returns:
        The agent's process id, and the read end of a non-blocking pipe with its output.
    """
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _prepare(launch_spec, home, limits, writing, supervisor)
            for descriptor in inherited:
                os.set_inheritable(descriptor, True)
            become()
            os.execve(launch_spec.command[0], launch_spec.command, launch_spec.env)  # noqa: S606 - its purpose
        except BaseException as error:  # the child must never return into the supervisor's code
            os.write(2, f"cannot start the agent: {error}\n".encode())
        os._exit(127)
    os.close(writing)
    return pid, reading


def _prepare(launch_spec: control.LaunchSpec, home: Path, limits: Limits, output: int, supervisor: int) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    processes.die_with_parent()
    if os.getppid() != supervisor:
        os._exit(127)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.disk_bytes:
        with contextlib.suppress(ValueError, OSError):  # a lower limit may be set already
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits.disk_bytes, limits.disk_bytes))
    if launch_spec.files:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (launch_spec.files, launch_spec.files))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    if launch_spec.cores:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, launch_spec.cores)
    with contextlib.suppress(OSError):  # if the machine runs out of memory, kill the agent rather than its supervisor
        Path("/proc/self/oom_score_adj").write_text("800")
    os.chdir(home)
