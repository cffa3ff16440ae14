"""The interval between two polls of a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Interval:
    """An interval between polls such that polling takes at most a given share of the time."""

    shortest: float
    """Minimum number of seconds between two polls."""
    share: float = 0.01
    """Share of the time that polling may take."""
    due: float = 0.0
    """The time of the next poll, on the clock of `time.monotonic`."""

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
