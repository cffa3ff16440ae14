"""What watching a run takes, whichever backend it has: when to look again, what it has on disk, why it is ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.world.files import bytes_on_disk


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
