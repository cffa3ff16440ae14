"""The orchestrator's side of a supervised run: check whether the supervisor is alive, wait for it, stop the run."""

from __future__ import annotations

import contextlib
import os
import select
import time
from signal import SIGKILL, SIGTERM

from common.locks import locked
from common.processes import start_time
from sandbox.limits import CANCEL_SECONDS
from sandbox.process import processes
from sandbox.supervision import control
from sandbox.world.files import remove_tree

START_SECONDS = 60.0
"""Time for a supervisor to start, or for another orchestrator to finish starting the same run."""
POLL_SECONDS = 0.25
"""Interval between two checks for new output."""


def alive(layout: control.Layout) -> bool:
    """Whether the run is being started or supervised, by any orchestrator."""
    try:
        with locked(layout.lock, shared=True) as lock:
            return lock is None
    except FileNotFoundError:  # discarded
        return False


def find(layout: control.Layout) -> int | None:
    """Process id of the supervisor, if it is alive."""
    supervisor = control.read(layout.supervisor, control.Supervisor)
    return supervisor.pid if supervisor and start_time(supervisor.pid) == supervisor.start_time else None


def sleep(layout: control.Layout, seconds: float) -> None:
    """Sleep until the supervisor ends, but no longer than `seconds`."""
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


def request_stop(layout: control.Layout) -> None:
    """Ask the supervisor to end the run; no error if there is none."""
    if not alive(layout):
        return
    with contextlib.suppress(FileNotFoundError):
        layout.stop.touch()
    pid = find(layout)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, SIGTERM)


def stop(layout: control.Layout) -> None:
    """Ask the supervisor to end the run, and kill both if it does not."""
    request_stop(layout)
    deadline = time.monotonic() + CANCEL_SECONDS + processes.KILL_SECONDS + START_SECONDS
    while alive(layout):
        if time.monotonic() > deadline:
            pid, launch_spec = find(layout), control.read(layout.task, control.LaunchSpec)
            if pid:
                os.kill(pid, SIGKILL)
            if launch_spec:
                processes.kill_by_marker(launch_spec.marker)
            return
        sleep(layout, POLL_SECONDS)


def discard(layout: control.Layout) -> None:
    """End the run, and remove everything of it."""
    stop(layout)
    remove_tree(layout.workdir)


def last_log_line(layout: control.Layout) -> str:
    """The last line in the log of a supervisor that failed."""
    try:
        lines = layout.supervisor_log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it was killed")
