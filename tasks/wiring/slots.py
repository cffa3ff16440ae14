"""Concurrency limits of this process: of downloads, preparations and agents, each with its own number of slots."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Literal

Kind = Literal["downloads", "preparations", "agents"]


# Cached, and so global, because the limit is one of the process: all flow runs and threads in it share the slots. Under
# a lock: threads that make the first call at the same time would get different semaphores.
_lock = threading.Lock()


@cache
def _semaphore(_kind: Kind, limit: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(limit)


@contextlib.contextmanager
def slot(kind: Kind, limit: int) -> Iterator[None]:
    """Wait for one of the `limit` slots of that kind, and hold it for the block."""
    with _lock:
        semaphore = _semaphore(kind, limit)
    with semaphore:
        yield
