"""The supervisor of one running agent: ``python -m sandbox.process.supervisor WORKDIR LOCK_FD [SLOT_FD]``.

It starts the agent, logs its output, enforces its limits, kills every process that the agent started, harvests its
files and writes the outcome. It does not need the orchestrator, which may have been killed in the meantime. It has one
thread and one loop, so the agent can be forked safely and there are no races.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import psutil

from common.processes import start_time
from sandbox.limits import CANCEL_SECONDS, MIB, Limits
from sandbox.process import processes
from sandbox.process.forking import start_agent
from sandbox.supervision import control, endings
from sandbox.supervision.disk import DiskUse
from sandbox.supervision.endings import End, EndReason, conclude
from sandbox.supervision.output import CappedLog
from sandbox.supervision.snapshots import Snapshots
from sandbox.supervision.watching import Interval

CHUNK = MIB
SHUT_DOWN_SECONDS = 0.5


class Supervision:
    """One run under supervision."""

    mounted_data = False
    """Whether ``data/`` is a mount that the agent cannot change."""

    def __init__(self, layout: control.Layout, launch_spec: control.LaunchSpec) -> None:
        """Prepare to supervise a run whose work directory is complete."""
        self.layout = layout
        self.launch_spec = launch_spec
        self.limits = Limits(**launch_spec.limits)
        self.reason: EndReason | None = None
        self.exit_code: int | None = None
        self.agent_pid = 0
        self._began = 0.0
        self._adopts_orphans = processes.adopt_orphans()
        self.tree = processes.ProcessTree(complete=self._adopts_orphans)
        self.log = CappedLog(layout.log, self.limits.log_bytes)
        self._stopped = False
        self._limits_interval = Interval(0.1)
        self._disk = DiskUse(layout.home, self.limits, self._pids, mounted_data=self.mounted_data)
        self._snapshot_interval = Interval(0.5, share=0.05)
        self._snapshots = Snapshots.of(layout, self.limits)

    def run(self) -> None:
        """Run the agent until it ends and write the outcome. None of its processes is alive afterwards."""
        signal.signal(signal.SIGTERM, self._on_stop)
        output = self._start()
        started_at, self._began = datetime.now(UTC), time.monotonic()
        try:
            self._disk.start()
            pid = os.getpid()
            ours = control.Supervisor(pid, start_time(pid) or 0.0, started_at.isoformat())
            control.write(self.layout.supervisor, ours)
            self._watch(output, self._began + self.limits.time_limit_seconds)
        finally:
            exit_code = self.exit_code if self.reason is None else None
            survivors = self._kill()
        seconds, finished_at = time.monotonic() - self._began, datetime.now(UTC)
        self._disk.close()
        self._snapshots.look(seconds, last=True)
        self._read(output, at_most=16 * CHUNK)
        self.log.close()
        reason = self.reason if exit_code is None else self._own_end(exit_code)
        if reason == endings.SHUT_DOWN:  # without an outcome, the next start runs the agent again
            sys.exit(reason.message)
        end = End(
            reason=reason,
            exit_code=exit_code,
            started_at=started_at,
            finished_at=finished_at,
            seconds=seconds,
            notes=(f"{survivors} of its processes could not be ended",) if survivors else (),
        )
        conclude(self.layout, self.limits, end)

    def _start(self) -> int:
        """Start the agent, whose process is then `agent_pid`; returns the descriptor of its output."""
        self.agent_pid, output = start_agent(self.launch_spec, self.layout.home, self.limits)
        return output

    def _kill(self) -> int:
        """Kill all processes of the agent; returns how many live on."""
        survivors = self.tree.kill(self._reap)
        return survivors if self._adopts_orphans else survivors + processes.kill_by_marker(self.launch_spec.marker)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped = True

    def _watch(self, output: int, deadline: float) -> None:
        """Watch until the agent has ended by itself, or the grace period after reaching a limit is over."""
        wake_reader, wake_writer = os.pipe()
        for descriptor in (wake_reader, wake_writer):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake the selector
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(wake_reader, selectors.EVENT_READ)
        selector.register(output, selectors.EVENT_READ)
        while True:
            self._reap()
            if self.exit_code is not None and (self.reason is None or not self.tree.processes()):
                return
            if self.reason is None and (self._stopped or self.layout.stop.exists()):
                self.reason = endings.CANCELLED if self.layout.stop.exists() else endings.SHUT_DOWN
                deadline = self._terminate(min(self.limits.grace_seconds, CANCEL_SECONDS))
            if time.monotonic() >= deadline:
                if self.reason:
                    return
                self.reason = endings.time_limit(self.limits)
                deadline = self._terminate(self.limits.grace_seconds)
            if over := self._over_limit():
                self.reason = self.reason or over
                return
            if self._snapshot_interval.is_due():
                with self._snapshot_interval.look():
                    self._snapshots.look(time.monotonic() - self._began, give_up=partial(self._is_over, deadline))
            due = min(deadline, self._limits_interval.due, self._snapshot_interval.due)
            for key, _ in selector.select(max(due - time.monotonic(), 0)):
                if key.fd == wake_reader:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_reader, 4096)
                elif not self._read(output, at_most=CHUNK):
                    selector.unregister(output)

    def _is_over(self, deadline: float) -> bool:
        """Whether there is something more urgent than a snapshot."""
        return bool(time.monotonic() >= deadline or self._stopped or self._over_limit() or self.layout.stop.exists())

    def _terminate(self, grace: float) -> float:
        """Send SIGTERM to all processes; returns when the grace period ends."""
        self.tree.send(signal.SIGTERM)
        return time.monotonic() + grace

    def _over_limit(self) -> EndReason | None:
        limits = self.limits
        if self._limits_interval.is_due():
            with self._limits_interval.look():
                descendants = self.tree.processes()
                if limits.processes and len(descendants) > limits.processes:
                    return endings.process_limit(limits)
                return self._memory(descendants) or self._disk.over()
        return None

    def _memory(self, descendants: list[psutil.Process]) -> EndReason | None:
        limit = self.limits.memory_bytes
        if limit and processes.memory(descendants, enough=limit) > limit:
            return endings.memory_limit(self.limits)
        return None

    def _own_end(self, code: int) -> EndReason | None:
        """Why the agent ended by itself, or None if it completed. A full disk also makes programs fail."""
        if code == -signal.SIGTERM or code == 128 + signal.SIGTERM:
            # When the machine is shut down, the agent may get its signal before this process does.
            deadline = time.monotonic() + SHUT_DOWN_SECONDS
            while not self._stopped and time.monotonic() < deadline:
                time.sleep(0.02)
        if self._stopped and not self.layout.stop.exists():
            return endings.SHUT_DOWN
        if code and self._disk.full():
            return endings.disk_limit(self.limits)
        return endings.crash(code) if code else self._disk.exceeded()

    def _pids(self) -> list[int]:
        return [process.pid for process in self.tree.processes()]

    def _reap(self) -> None:
        """Collect the exit status of children that have ended: the agent, and orphans adopted from it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._ended(pid, status)

    def _ended(self, pid: int, status: int) -> None:
        """A child has ended."""
        if pid == self.agent_pid:
            self.exit_code = os.waitstatus_to_exitcode(status)

    def _read(self, output: int, at_most: int) -> bool:
        """Copy the agent's output to its log; returns whether more may come."""
        while at_most > 0:
            try:
                chunk = os.read(output, min(at_most, 64 * 1024))
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.log.write(chunk)
            at_most -= len(chunk)
        return True


def main(workdir: str, *locks: str, supervision: type[Supervision] = Supervision) -> None:
    """Supervise the run in ``workdir`` and hold its locks, which are open as descriptors with these numbers."""
    for lock in locks:
        os.set_inheritable(int(lock), False)
    layout = control.Layout(Path(workdir))
    launch_spec = control.read(layout.task, control.LaunchSpec)
    if launch_spec is None:
        sys.exit(f"no task in {layout.task}")
    supervision(layout, launch_spec).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
