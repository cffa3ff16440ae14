"""The process that stays beside one running agent: ``python -m sandbox.process.supervisor WORKDIR LOCK_FD``.

It starts the agent, keeps its output, holds it to its limits, ends every process it started, collects what it left and
writes the outcome, all without the orchestrator, which may have been killed meanwhile. One thread, one loop: so the
agent can be forked safely, and nothing races.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from common.units import duration, size
from sandbox.errors import BackendError
from sandbox.limits import CANCEL_SECONDS, MIB, Limits
from sandbox.process import processes
from sandbox.process.forking import start_agent
from sandbox.supervision import control
from sandbox.supervision.harvest import collect
from sandbox.supervision.output import CappedLog
from sandbox.supervision.snapshots import Snapshots
from sandbox.supervision.watching import DiskUse, Ending, Interval
from sandbox.world.files import remove_tree

CHUNK = MIB


class Supervision:
    """One run under supervision."""

    def __init__(self, layout: control.Layout, task: control.Task) -> None:
        """Take over a laid-out work directory; nothing runs yet."""
        self.layout = layout
        self.task = task
        self.limits = Limits(**task.limits)
        self.ending: Ending | None = None
        self.exit_code: int | None = None
        self.agent_pid = 0
        self._began = 0.0
        self._adopts_orphans = processes.adopt_orphans()
        self.family = processes.Family(complete=self._adopts_orphans)
        self.log = CappedLog(layout.log, self.limits.log_bytes)
        self._stopped = False
        self._look = Interval(0.1)
        self._disk = DiskUse(layout.home) if self.limits.disk_bytes else None
        self._snap = Interval(0.5, share=0.05)
        self._snapshots = Snapshots.of(layout, self.limits)

    def run(self) -> control.Outcome:
        """Run the agent to its end; every process of it is gone then."""
        signal.signal(signal.SIGTERM, self._on_stop)
        started_at, self._began = datetime.now(UTC), time.monotonic()
        self.agent_pid, output = start_agent(self.task, self.layout.home, self.limits)
        me = os.getpid()
        control.write(self.layout.supervisor, control.Supervisor(me, processes.born(me) or 0.0, started_at.isoformat()))
        try:
            self._watch(output, self._began + self.limits.time_limit_seconds)
        finally:
            ended_itself = self.exit_code is not None and self.ending is None
            survivors = self.family.end(self._reap)
            if not self._adopts_orphans:
                survivors += processes.end_marked(self.task.marker)
        seconds, finished_at = time.monotonic() - self._began, datetime.now(UTC)
        self._snapshots.look(seconds, last=True)
        self._read(output, at_most=16 * CHUNK)
        self.log.close()
        if ended_itself and self.exit_code:
            self.ending = self._crash(self.exit_code)
        has_submission, notes = self._collect()
        if survivors:
            notes.append(f"{survivors} of its processes could not be ended")
        if self.ending:
            notes.insert(0, self.ending.message)
        return control.Outcome(
            status=self.ending.status if self.ending else "completed",
            message="; ".join(notes) or None,
            exit_code=self.exit_code if ended_itself else None,
            started_at=started_at.isoformat(),
            finished_at=finished_at.isoformat(),
            duration_seconds=seconds,
            has_submission=has_submission,
        )

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped = True

    def _watch(self, output: int, deadline: float) -> None:
        """Until the agent has ended, by itself or, at a limit, after its grace period."""
        wake, woken = os.pipe()
        for descriptor in (wake, woken):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(wake, selectors.EVENT_READ)
        selector.register(output, selectors.EVENT_READ)
        while True:
            self._reap()
            if self.exit_code is not None and (self.ending is None or not self.family.members()):
                return
            if self.ending is None and (self._stopped or self.layout.stop.exists()):
                self.ending = Ending("cancelled", "stopped by the user")
                deadline = self._ask_to_end(min(self.limits.grace_seconds, CANCEL_SECONDS))
            if time.monotonic() >= deadline:
                if self.ending:
                    return
                limit = duration(self.limits.time_limit_seconds)
                self.ending = Ending("timeout", f"the time limit of {limit} was reached")
                deadline = self._ask_to_end(self.limits.grace_seconds)
            if over := self._over_limit():
                self.ending = self.ending or over
                return
            if self._snap.is_due():
                with self._snap.look():
                    self._snapshots.look(time.monotonic() - self._began)
            due = min(deadline, self._look.due, self._snap.due, self._disk.due if self._disk else deadline)
            for key, _ in selector.select(max(due - time.monotonic(), 0)):
                if key.fd == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                elif not self._read(output, at_most=CHUNK):
                    selector.unregister(output)

    def _ask_to_end(self, grace: float) -> float:
        self.family.send(signal.SIGTERM)
        return time.monotonic() + grace

    def _over_limit(self) -> Ending | None:
        limits = self.limits
        if self._look.is_due():
            with self._look.look():
                members = self.family.members()
                if limits.processes and len(members) > limits.processes:
                    return Ending("processes", f"more than {limits.processes} processes at once")
                if limits.memory_bytes and processes.memory(members, enough=limits.memory_bytes) > limits.memory_bytes:
                    return Ending("memory", f"more memory than the limit of {size(limits.memory_bytes)}")
        if self._disk and limits.disk_bytes and self._disk.added() > limits.disk_bytes:
            return self._disk_ending()
        return None

    def _collect(self) -> tuple[bool, list[str]]:
        """Take what the agent left and remove the rest, first of all what may have filled the disk."""
        with contextlib.suppress(BackendError):
            remove_tree(self.layout.home / "tmp")
        found = collect(self.layout.home, self.layout.log, self.layout.collected, self.limits)
        with contextlib.suppress(BackendError):  # another user's files, perhaps; the next start will say so
            remove_tree(self.layout.home)
        return found

    def _disk_ending(self) -> Ending:
        return Ending("disk", f"more on disk than the limit of {size(self.limits.disk_bytes or 0)}")

    def _crash(self, code: int) -> Ending:
        """What a failure means: a full disk allowance shows as a failed or killed program, too."""
        if self._disk and self.limits.disk_bytes and self._disk.added(fresh=True) >= self.limits.disk_bytes:
            return self._disk_ending()
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            hint = " (the machine may have run out of memory)" if -code == signal.SIGKILL else ""
            return Ending("crashed", f"the agent was ended by {name}{hint}")
        return Ending("crashed", f"the agent ended with exit code {code}; the end of agent.log may say why")

    def _reap(self) -> None:
        """Take the exit status of everything that ended: the agent and the orphans adopted from it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.agent_pid:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def _read(self, output: int, at_most: int) -> bool:
        """Move the agent's output to its log; whether more may come."""
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


def main(workdir: str, lock: str) -> None:
    """Supervise the run laid out in ``workdir``, holding the lock that is open as descriptor number ``lock``."""
    os.set_inheritable(int(lock), False)
    layout = control.Layout(Path(workdir))
    task = control.read(layout.task, control.Task)
    if task is None:
        sys.exit(f"no task in {layout.task}")
    control.write(layout.outcome, Supervision(layout, task).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
