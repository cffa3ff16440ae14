"""A supervised run as others see it: whether its supervisor lives, how to wait for it, how to end both."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import time
from collections.abc import Iterator
from signal import SIGKILL, SIGTERM

from sandbox.limits import CANCEL_SECONDS
from sandbox.process import processes
from sandbox.supervision import control

START_SECONDS = 60.0
"""For a supervisor to come up, or another orchestrator to finish starting the same run."""
LOOK_SECONDS = 0.25
"""How often a wait looks for new output."""


@contextlib.contextmanager
def lock(layout: control.Layout, mode: int = fcntl.LOCK_EX) -> Iterator[int | None]:
    """The run's lock as an open descriptor, which a supervisor inherits; ``None`` when another process has it."""
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)


def alive(layout: control.Layout) -> bool:
    """Whether the run is being started or supervised, by whichever orchestrator."""
    try:
        with lock(layout, fcntl.LOCK_SH) as descriptor:
            return descriptor is None
    except FileNotFoundError:  # discarded
        return False


def find(layout: control.Layout) -> int | None:
    """Process id of the living supervisor."""
    supervisor = control.read(layout.supervisor, control.Supervisor)
    return supervisor.pid if supervisor and processes.born(supervisor.pid) == supervisor.born else None


def sleep(layout: control.Layout, seconds: float) -> None:
    """Sleep, but no longer than the supervisor lives."""
    pid = find(layout)
    if pid is None or not hasattr(os, "pidfd_open"):
        time.sleep(min(seconds, 0.05) if pid is None else seconds)
        return
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)


def ask_to_stop(layout: control.Layout) -> None:
    """Tell the supervisor that the run is to end; nothing happens if there is none."""
    if not alive(layout):
        return
    with contextlib.suppress(FileNotFoundError):
        layout.stop.touch()
    pid = find(layout)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, SIGTERM)


def stop(layout: control.Layout) -> None:
    """Ask the supervisor to end its run, and end both by force if it cannot."""
    ask_to_stop(layout)
    give_up = time.monotonic() + CANCEL_SECONDS + processes.END_SECONDS + START_SECONDS
    while alive(layout):
        if time.monotonic() > give_up:
            pid, task = find(layout), control.read(layout.task, control.Task)
            if pid:
                os.kill(pid, SIGKILL)
            if task:
                processes.end_marked(task.marker)
            return
        sleep(layout, LOOK_SECONDS)


def last_words(layout: control.Layout) -> str:
    """The last line a supervisor that failed wrote."""
    try:
        lines = layout.supervisor_log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it was killed")
