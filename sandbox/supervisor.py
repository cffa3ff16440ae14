"""The process that stays beside one running agent: ``python -m sandbox.supervisor WORKDIR LOCK_FD``.

It starts the agent, keeps its output, holds it to its limits, ends every process it started, collects what it left and
writes the outcome, all without the orchestrator, which may have been killed meanwhile. One thread, one loop: so the
agent can be forked safely, and nothing races.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from sandbox import control, processes
from sandbox.collect import collect
from sandbox.errors import BackendError
from sandbox.files import bytes_on_disk, remove_tree
from sandbox.limits import CANCEL_SECONDS, MIB, Limits
from sandbox.output import CappedLog
from sandbox.units import duration, size

CHUNK = MIB
NICENESS = 5


@dataclass
class Interval:
    """When to look at something again: so that looking takes a small share of the time, however long one look takes."""

    shortest: float
    share: float = 0.01
    due: float = 0.0

    @contextlib.contextmanager
    def look(self) -> Iterator[None]:
        """Do it now, and choose the next time by how long it takes."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self.due = now + max(self.shortest, (now - began) / self.share)

    def is_due(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self.due


class DiskUse:
    """What a run has added to its home, in bytes on disk."""

    def __init__(self, home: Path) -> None:
        """Measure what is there before the agent runs."""
        # The data apart: they may be millions of files, so they are looked at rarely; nothing should change there
        # anyway.
        self._measures = (lambda: bytes_on_disk(home, frozenset({"data"}))), (lambda: bytes_on_disk(home / "data"))
        self._intervals = Interval(0.25), Interval(0.25)
        self._before = [measure() for measure in self._measures]
        self._now = list(self._before)

    def added(self, *, fresh: bool = False) -> int:
        """Bytes added, as of the last look; it is looked again where that is due, everywhere if ``fresh``."""
        for index, interval in enumerate(self._intervals):
            if fresh or interval.is_due():
                with interval.look():
                    self._now[index] = self._measures[index]()
        return sum(self._now) - sum(self._before)

    @property
    def due(self) -> float:
        """When to look again."""
        return min(interval.due for interval in self._intervals)


@dataclass
class Ending:
    """Why a run is over before its end, for status and message."""

    status: str
    message: str


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
        self._adopts_orphans = processes.adopt_orphans()
        self.family = processes.Family(complete=self._adopts_orphans)
        self.log = CappedLog(layout.log, self.limits.log_bytes)
        self._stopped = False
        self._look = Interval(0.1)
        self._disk = DiskUse(layout.home) if self.limits.disk_bytes else None

    def run(self) -> control.Outcome:
        """Run the agent to its end; every process of it is gone then."""
        signal.signal(signal.SIGTERM, self._on_stop)
        started_at, began = datetime.now(UTC), time.monotonic()
        output = self._start()
        me = os.getpid()
        control.write(self.layout.supervisor, control.Supervisor(me, processes.born(me) or 0.0, started_at.isoformat()))
        try:
            self._watch(output, began + self.limits.time_limit_seconds)
        finally:
            ended_itself = self.exit_code is not None and self.ending is None
            survivors = self.family.end(self._reap)
            if not self._adopts_orphans:
                survivors += processes.end_marked(self.task.marker)
        seconds, finished_at = time.monotonic() - began, datetime.now(UTC)
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

    def _start(self) -> int:
        """Start the agent; the reading end of a pipe with its output."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        supervisor = os.getpid()
        self.agent_pid = os.fork()
        if self.agent_pid == 0:
            try:
                self._become_agent(writing, supervisor)
            except BaseException as error:  # whatever happens in the child must not return into the supervisor
                os.write(2, f"cannot start the agent: {error}\n".encode())
            os._exit(127)
        os.close(writing)
        return reading

    def _become_agent(self, output: int, supervisor: int) -> None:
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
        if self.limits.disk_bytes:
            with contextlib.suppress(ValueError, OSError):  # a lower limit may be set already
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.limits.disk_bytes, self.limits.disk_bytes))
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
        if self.task.cores:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self.task.cores)
        with contextlib.suppress(OSError):  # if the machine runs out of memory, the agent shall go, not what watches it
            Path("/proc/self/oom_score_adj").write_text("800")
        os.chdir(self.layout.home)
        os.execve(self.task.command[0], self.task.command, self.task.env)  # noqa: S606 - the agent is what we are for

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
            due = min(deadline, self._look.due, self._disk.due if self._disk else deadline)
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
