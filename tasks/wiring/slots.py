"""Concurrency limits of this process: of downloads, preparations, agents and copies, each with its own number of slots.

"copies" are the runs that fetch their data or wait with them for a slot of "agents".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Literal

Kind = Literal["downloads", "preparations", "copies", "agents"]


# The semaphores are cached and so global, because the limits are per process: all its flow runs and threads share them.
# Without the lock, threads that make the first call at the same time would get different semaphores.
_lock = threading.Lock()


@cache
def _semaphore(_kind: Kind, limit: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(limit)


@contextlib.contextmanager
def slot(kind: Kind, limit: int) -> Iterator[None]:
    """Wait for one of the `limit` slots of this kind and hold it for the `with` block."""
    with _lock:
        semaphore = _semaphore(kind, limit)
    with semaphore:
        yield
