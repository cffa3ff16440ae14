"""Polling a run: the interval between two polls, and the run's disk usage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.world.files import bytes_on_disk


@dataclass
class Interval:
    """When to poll again, so that polling takes at most a given share of the time."""

    shortest: float
    """Minimum number of seconds between two polls."""
    share: float = 0.01
    """Share of the time that polling may take."""
    due: float = 0.0
    """When to poll next, on the clock of `time.monotonic`."""

    @contextlib.contextmanager
    def look(self) -> Iterator[None]:
        """Poll in the block; its duration determines when the next poll is due."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self.due = now + max(self.shortest, (now - began) / self.share)

    def is_due(self) -> bool:
        """Whether it is time to poll."""
        return time.monotonic() >= self.due


class DiskUse:
    """Bytes on disk that a run has added to its home."""

    def __init__(self, home: Path) -> None:
        """Measure the home before the agent runs."""
        # The data are measured separately: they may be millions of files, and nothing should change them. Measuring
        # them takes long, so their interval is long, too.
        self._measures = (lambda: bytes_on_disk(home, frozenset({"data"}))), (lambda: bytes_on_disk(home / "data"))
        self._intervals = Interval(0.25), Interval(0.25)
        self._before = [measure() for measure in self._measures]
        self._now = list(self._before)

    def added(self, *, fresh: bool = False) -> int:
        """Bytes added. Folders are measured again when their interval is over, or all of them if ``fresh``."""
        for index, interval in enumerate(self._intervals):
            if fresh or interval.is_due():
                with interval.look():
                    self._now[index] = self._measures[index]()
        return sum(self._now) - sum(self._before)

    @property
    def due(self) -> float:
        """When to measure again."""
        return min(interval.due for interval in self._intervals)
