"""Watch a container from outside until it ends: log its output, enforce time and disk limits, take snapshots."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from sandbox.docker.engine import FORWARDER, EngineUnreachable, engine_errors, out_of_memory_kills, parse_time
from sandbox.docker.engines import describe
from sandbox.docker.runs import find
from sandbox.errors import BackendError
from sandbox.limits import CANCEL_SECONDS, Limits
from sandbox.supervision import control, endings, openfiles
from sandbox.supervision.control import Layout
from sandbox.supervision.disk import DiskUse
from sandbox.supervision.endings import End, EndReason
from sandbox.supervision.output import CappedLog
from sandbox.supervision.snapshots import Snapshots
from sandbox.supervision.watching import Interval

POLL_SECONDS = 0.25
ENGINE_SECONDS = 60.0
"""Time to wait for an engine that does not answer, as it may be restarting."""
LOG_SECONDS = 20.0
"""Time to wait for the rest of the output after the end."""
KILL_SECONDS = 30.0
NETWORK_SECONDS = 5.0
"""Interval between two checks of the forwarder."""
ENGINE_SHUTDOWN_SECONDS = 30.0
"""An engine that shuts down ends all containers within so many seconds of each other."""
STARTED_AGAIN = "its container was started again"
NETWORK_ENDED = "the container engine or the machine was restarted, or somebody ended the run's forwarder"
END_LINES, END_BYTES = 100, 1024
KILLED = 128 + 9
"""Exit code of a container whose process got SIGKILL."""


@dataclass(frozen=True)
class State:
    """The state of a container, as reported by the engine."""

    running: bool
    exit_code: int
    out_of_memory: bool
    started_at: datetime
    finished_at: datetime

    @property
    def seconds(self) -> float:
        """Run time of a container that has ended."""
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


def state(container: Any) -> State:
    """Query the engine. Raises `EngineUnreachable` if it does not answer, `BackendError` if the container is gone."""
    with engine_errors(f"container {container.name}"):
        container.reload()
    engine_state = container.attrs["State"]
    return State(
        running=bool(engine_state["Running"]) or engine_state["Status"] == "created",
        exit_code=int(engine_state["ExitCode"]),
        out_of_memory=bool(engine_state["OOMKilled"]),
        started_at=parse_time(engine_state["StartedAt"]),
        finished_at=parse_time(engine_state["FinishedAt"]),
    )


class Watch:
    """Watches one container."""

    def __init__(self, container: Any, layout: Layout, limits: Limits, on_output: Callable[[], None]) -> None:
        """Start to log the container's output, from its beginning.

        Args:
            container: a container that is running or has ended.
            layout: the run's work directory.
            limits: limits of the run.
            on_output: called regularly, when the log may have grown.
        """
        self.container, self.layout, self.limits = container, layout, limits
        self.on_output = on_output
        current = state(container)
        started = control.read(layout.started, control.Started)
        self._started_at = datetime.fromisoformat(started.at) if started else current.started_at
        self._kills_before = started.kills if started else out_of_memory_kills()
        # The container's start is read from the wall clock once. From then on time is measured with the monotonic
        # clock, which cannot be set.
        self._zero = time.monotonic() - max(0.0, (datetime.now(UTC) - current.started_at).total_seconds())
        layout.log.unlink(missing_ok=True)
        self._is_podman = describe(container.client).is_podman
        self._log = CappedLog(layout.log, limits.log_bytes)
        self._seen, self._last = 0, b""  # bytes that the reader has logged, and the last of them
        self._reader = threading.Thread(target=self._read, name=f"log {container.name}", daemon=True)
        self._reader.start()
        self._snapshots = Snapshots.of(layout, limits)
        self._snapshot_interval = Interval(0.5, share=0.05)
        self._network_interval = Interval(NETWORK_SECONDS)
        self._disk = DiskUse(layout.home, limits, self._pids, mounted_data=True)
        self._disk.start()

    @property
    def seconds(self) -> float:
        """Time since the container's start."""
        return time.monotonic() - self._zero

    def until_end(self) -> End:
        """Wait until the container ends, or end it at a limit. No process of the run is alive afterwards.

        Raises:
            EngineUnreachable: the engine has not answered for a minute.
        """
        try:
            return self._until_end()
        finally:
            self._disk.close()

    def _until_end(self) -> End:
        reason: EndReason | None = None
        silent_since: float | None = None
        while True:
            try:
                current = state(self.container)
                if current.running and self._network_interval.is_due():
                    with self._network_interval.look():
                        reason = reason or (endings.lost(NETWORK_ENDED) if self._network_ended(current) else None)
                silent_since = None
            except EngineUnreachable:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > ENGINE_SECONDS:
                    raise
                time.sleep(1.0)
                continue
            self.on_output()
            if not current.running:
                break
            if current.started_at != self._started_at:
                reason = reason or endings.lost(STARTED_AGAIN)
            reason = reason or self._limit()
            if reason:
                self._terminate(reason)
                continue
            if self._snapshot_interval.is_due():
                with self._snapshot_interval.look():
                    self._snapshots.look(self.seconds, give_up=self._limit)
            time.sleep(POLL_SECONDS)
        self._disk.close()
        self._reader.join(LOG_SECONDS)
        self._append_lost_output()
        self._log.close()
        self._snapshots.look(current.seconds, last=True)
        reason = reason or self._own_end(current)
        ended_itself = reason is None or reason.status in ("crashed", "memory")
        # The engine notes the start after the process has begun, so that a very short one seems to end before.
        finished = max(current.started_at, current.finished_at)
        return End(reason, current.exit_code if ended_itself else None, current.started_at, finished, current.seconds)

    def _limit(self) -> EndReason | None:
        """Why the run must be ended now; None if it may go on."""
        if self.layout.stop.exists():
            return endings.CANCELLED
        if self.seconds >= self.limits.time_limit_seconds:
            return endings.time_limit(self.limits)
        return self._disk.over() or openfiles.floor(self._pids)

    def _terminate(self, reason: EndReason) -> None:
        """Send SIGTERM, and SIGKILL after the grace period, which is zero if others suffer."""
        grace = 0.0 if reason.status in ("disk", "processes") else self.limits.grace_seconds
        grace = min(grace, CANCEL_SECONDS) if self.layout.stop.exists() else grace
        stop(self.container, grace, self.on_output)

    def _own_end(self, last: State) -> EndReason | None:
        """Why the container ended although this process did not end it; None if the agent completed."""
        if self.layout.stop.exists():
            return endings.CANCELLED
        # An exit code proves nothing: an engine that shuts down sends SIGTERM, on which an agent may exit with 0. The
        # engine is asked for signals first, because it forgets them when it restarts, and ends the forwarder then.
        signalled = _retry_engine(lambda: self._somebody_signalled_it(last))
        if last.started_at != self._started_at:
            return endings.lost(STARTED_AGAIN)
        if _retry_engine(lambda: self._network_ended(last)):
            return endings.lost(NETWORK_ENDED)
        if last.seconds >= self.limits.time_limit_seconds:
            return endings.time_limit(self.limits)
        # Podman 4 does not notice that the kernel has killed a process.
        killed = last.exit_code == KILLED and out_of_memory_kills() > self._kills_before and not signalled
        if last.exit_code and (last.out_of_memory or (killed and self.limits.memory_bytes)):
            return endings.memory_limit(self.limits)
        if self._disk.exceeded() or (last.exit_code and self._disk.full()):
            return endings.disk_limit(self.limits)
        if signalled:
            return endings.lost("somebody ended its container")
        return endings.crash(last.exit_code) if last.exit_code else None

    def _network_ended(self, last: State) -> bool:
        """Whether the forwarder, which never ends by itself, has ended before the agent or together with it.

        The agent's network ends with it. An engine that shuts down ends both. A forwarder that was started again has
        another network, in which the agent is not.
        """
        forwarder = find(self.container.client, self.layout.workdir, FORWARDER)
        if forwarder is None:
            return True
        finished_at = parse_time(forwarder.attrs["State"]["FinishedAt"])  # in the year 1 if it never has
        seconds_apart = (finished_at - last.finished_at).total_seconds()
        return finished_at.year > 1 and (last.running or seconds_apart < ENGINE_SHUTDOWN_SECONDS)

    def _somebody_signalled_it(self, last: State) -> bool:
        """Whether the engine remembers that somebody made it signal the container; this process did not."""
        with engine_errors(f"events of {self.container.name}"):
            events = self.container.client.api.events(
                since=last.started_at.timestamp(),
                until=datetime.now(UTC).timestamp(),
                filters={"container": self.container.id, "event": "kill"},
                decode=True,
            )
            return any(event["Action"] == "kill" for event in events)

    def _pids(self) -> list[int]:
        """The container's processes, if they can be seen from here: not if the engine is on another machine."""
        first_pid = self.container.attrs["State"].get("Pid") or 0
        with contextlib.suppress(OSError, psutil.Error):
            if first_pid and self.container.id in Path(f"/proc/{first_pid}/cgroup").read_text():
                return [first_pid, *(process.pid for process in psutil.Process(first_pid).children(recursive=True))]
        return []

    def _read(self) -> None:
        """Log the output as it arrives, in a thread. Errors are ignored: the container's state shows them, too."""
        with contextlib.suppress(Exception):
            for chunk in self.container.logs(stream=True, follow=True):
                self._log.write(chunk)
                self._seen, self._last = self._seen + len(chunk), (self._last + chunk)[-END_BYTES:]

    def _append_lost_output(self) -> None:
        """Append what the reader has not logged.

        On a busy machine, the engine ends the stream of a client that follows fast output when the container ends,
        wherever the client is. If it has dropped a part in between, only the last lines are appended.
        """
        with contextlib.suppress(Exception):
            missing = missing_output(self._last, self.container.logs(tail=END_LINES))
            if missing and not self._reader.is_alive():
                rest = rest_of(iter(self.container.logs(stream=True, follow=False)), self._seen, self._last)
                if rest is None and self._is_podman:  # which breaks long lines when it is followed
                    rest = self.container.logs(stream=True, follow=False)
                    self._log.restart()
                for chunk in rest or [missing]:
                    self._log.write(chunk)
            else:
                self._log.write(missing)


def rest_of(output: Iterator[bytes], seen: int, last: bytes) -> Iterator[bytes] | None:
    """The part of an output that follows after the beginning that is in the log.

    Args:
        output: All of the output, in pieces.
        seen: The number of bytes in the log.
        last: The last `END_BYTES` of them; all if they are fewer.

    Returns None if the log is not the beginning of the output.
    """
    piece, before, position = b"", b"", 0
    while position < seen:
        next_piece = next(output, None)
        if next_piece is None:
            return None
        logged_part, piece = next_piece[: seen - position], next_piece[seen - position :]
        before, position = (before + logged_part)[-END_BYTES:], position + len(logged_part)
    return chain([piece], output) if before == last else None


def missing_output(seen: bytes, end: bytes) -> bytes:
    """The bytes to append to a log, so that it ends like the output.

    Args:
        seen: The last bytes of the log; all of them if they are fewer than `END_BYTES`.
        end: The last lines of the output; all of them if they are fewer than `END_LINES`.
    """
    if not end or seen.endswith(end[-END_BYTES:]):
        return b""
    if not seen and end.count(b"\n") < END_LINES:
        return end
    if seen and (start := end.find(seen)) >= 0:
        return end[start + len(seen) :]
    return b"\n[... some output was lost ...]\n" + end


def _retry_engine(query: Callable[[], bool]) -> bool:
    """Ask an engine that may be restarting. Raises `EngineUnreachable` if it has not answered for a minute."""
    deadline = time.monotonic() + ENGINE_SECONDS
    while True:
        try:
            return query()
        except EngineUnreachable:
            if time.monotonic() > deadline:
                raise
        time.sleep(1.0)


def stop(container: Any, grace: float, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Send SIGTERM to a container, SIGKILL after the grace period, and wait for its end, if it has not ended yet.

    Raises:
        BackendError: the engine cannot end the container.
    """
    with contextlib.suppress(BackendError), engine_errors(f"container {container.name}"):
        container.kill(signal="SIGTERM")
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not state(container).running:
            return
        meanwhile()
        time.sleep(min(POLL_SECONDS, 0.1))
    with contextlib.suppress(BackendError), engine_errors(f"container {container.name}"):
        container.kill(signal="SIGKILL")
    deadline = time.monotonic() + KILL_SECONDS
    while state(container).running:
        if time.monotonic() > deadline:
            raise BackendError(f"container {container.name} cannot be ended: see `docker inspect`")
        time.sleep(0.05)
