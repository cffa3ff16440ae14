"""Watching one container to its end: output, wall clock, disk, snapshots; all from outside."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.units import duration, size
from sandbox.docker.engine import EngineGone, in_words
from sandbox.errors import BackendError
from sandbox.limits import CANCEL_SECONDS, Limits
from sandbox.supervision.control import Layout
from sandbox.supervision.output import CappedLog
from sandbox.supervision.snapshots import Snapshots
from sandbox.supervision.watching import Ending, Interval
from sandbox.world.files import bytes_on_disk

LOOK_SECONDS = 0.25
ENGINE_SECONDS = 60.0
"""How long an engine that does not answer is waited for: it may be restarting."""
LOG_SECONDS = 20.0
"""For the rest of the output after the end."""
KILL_SECONDS = 30.0
END_LINES, END_BYTES = 100, 1024


@dataclass(frozen=True)
class State:
    """What the engine says of a container."""

    running: bool
    exit_code: int
    out_of_memory: bool
    started_at: datetime
    finished_at: datetime


def state(container: Any) -> State:
    """Ask the engine. Raises `EngineGone` if it does not answer, `BackendError` if the container is gone."""
    with in_words(f"container {container.name}"):
        container.reload()
    found = container.attrs["State"]
    return State(
        running=bool(found["Running"]) or found["Status"] == "created",
        exit_code=int(found["ExitCode"]),
        out_of_memory=bool(found["OOMKilled"]),
        started_at=moment(found["StartedAt"]),
        finished_at=moment(found["FinishedAt"]),
    )


def moment(text: str) -> datetime:
    """The engine's time (nanoseconds, Z) as UTC."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", text).replace("Z", "+00:00")
    return datetime.fromisoformat(text).astimezone(UTC)


class Watch:
    """One container under watch."""

    def __init__(self, container: Any, layout: Layout, limits: Limits, on_output: Callable[[], None]) -> None:
        """Begin to keep its output, from the beginning.

        Args:
            container: that runs or has ended.
            layout: its run's work directory.
            limits: what it may use.
            on_output: called now and then, when the log may have grown.
        """
        self.container, self.layout, self.limits = container, layout, limits
        self.on_output = on_output
        self.ending: Ending | None = None
        now = state(container)
        self.started_at = now.started_at
        # From the engine's clock once, then from one that cannot be set.
        self._zero = time.monotonic() - max(0.0, (datetime.now(UTC) - now.started_at).total_seconds())
        layout.log.unlink(missing_ok=True)
        self._log = CappedLog(layout.log, limits.log_bytes)
        self._last = b""
        self._reader = threading.Thread(target=self._read, name=f"log {container.name}", daemon=True)
        self._reader.start()
        self._snapshots = Snapshots.of(layout, limits)
        self._disk, self._snap = Interval(0.25, share=0.05), Interval(0.5, share=0.05)

    @property
    def seconds(self) -> float:
        """Since the container's start."""
        return time.monotonic() - self._zero

    def until_end(self) -> State:
        """Wait for the end, or bring it about at a limit. Afterwards nothing of the run lives.

        Raises:
            EngineGone: the engine has not answered for a minute.
        """
        silent_since: float | None = None
        while True:
            try:
                now = state(self.container)
                silent_since = None
            except EngineGone:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > ENGINE_SECONDS:
                    raise
                time.sleep(1.0)
                continue
            self.on_output()
            if not now.running:
                break
            self.ending = self.ending or self._limit()
            if self.ending:
                self.end(0.0 if self.ending.status == "disk" else self.limits.grace_seconds)
                continue
            if self._snap.is_due():
                with self._snap.look():
                    self._snapshots.look(self.seconds)
            time.sleep(LOOK_SECONDS)
        self._reader.join(LOG_SECONDS)
        self._add_lost_end()
        self._log.close()
        self._snapshots.look((now.finished_at - now.started_at).total_seconds(), last=True)
        self.ending = self.ending or self._own_end(now)
        return now

    def end(self, grace: float) -> None:
        """SIGTERM, and SIGKILL after the grace period."""
        end(self.container, min(grace, CANCEL_SECONDS) if self.layout.stop.exists() else grace, self.on_output)

    def _limit(self) -> Ending | None:
        if self.layout.stop.exists():
            return Ending("cancelled", "stopped by the user")
        if self.seconds >= self.limits.time_limit_seconds:
            return self._timeout()
        if self.limits.disk_bytes and self._disk.is_due():
            with self._disk.look():
                used = bytes_on_disk(self.layout.home, frozenset({"data"}))
            if used > self.limits.disk_bytes:
                return self._full()
        return None

    def _own_end(self, now: State) -> Ending | None:
        """What an end that we did not bring about means."""
        if self.layout.stop.exists():
            return Ending("cancelled", "stopped by the user")
        if (now.finished_at - now.started_at).total_seconds() >= self.limits.time_limit_seconds:
            return self._timeout()
        if now.exit_code == 0:
            return None
        if now.out_of_memory:
            return Ending("memory", f"more memory than the limit of {size(self.limits.memory_bytes or 0)}")
        used = bytes_on_disk(self.layout.home, frozenset({"data"})) if self.limits.disk_bytes else 0
        if self.limits.disk_bytes and used >= self.limits.disk_bytes:
            return self._full()
        number = now.exit_code - 128
        name = f" ({signal.Signals(number).name})" if number in set(signal.Signals) else ""
        return Ending(
            "crashed", f"the agent ended with exit code {now.exit_code}{name}; the end of agent.log may say why"
        )

    def _timeout(self) -> Ending:
        return Ending("timeout", f"the time limit of {duration(self.limits.time_limit_seconds)} was reached")

    def _full(self) -> Ending:
        return Ending("disk", f"more on disk than the limit of {size(self.limits.disk_bytes or 0)}")

    def _read(self) -> None:
        """In a thread: the output as it comes. What breaks it off shows in the container's state."""
        with contextlib.suppress(Exception):
            for chunk in self.container.logs(stream=True, follow=True):
                self._log.write(chunk)
                self._last = (self._last + chunk)[-END_BYTES:]

    def _add_lost_end(self) -> None:
        """The engine loses output to those who follow a flood of it, but has the end."""
        with contextlib.suppress(Exception):
            end = self.container.logs(tail=END_LINES)
            if end and not self._last.endswith(end[-END_BYTES:]):
                self._log.write(b"\n[... some output was lost ...]\n" + end)


def end(container: Any, grace: float, meanwhile: Callable[[], None] = lambda: None) -> None:
    """SIGTERM to a container, SIGKILL after the grace period, and wait until it is over. No error if it is already.

    Raises:
        BackendError: the engine cannot end it.
    """
    with contextlib.suppress(BackendError), in_words(f"container {container.name}"):
        container.kill(signal="SIGTERM")
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not state(container).running:
            return
        meanwhile()
        time.sleep(min(LOOK_SECONDS, 0.1))
    with contextlib.suppress(BackendError), in_words(f"container {container.name}"):
        container.kill(signal="SIGKILL")
    deadline = time.monotonic() + KILL_SECONDS
    while state(container).running:
        if time.monotonic() > deadline:
            raise BackendError(f"container {container.name} cannot be ended: look at it with docker inspect")
        time.sleep(0.05)
