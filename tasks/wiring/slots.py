"""Concurrency limits of this process: of downloads, preparations and agents, each with its own number of slots."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Literal

Kind = Literal["downloads", "preparations", "agents"]


# Cached, and so global, because the limit is one of the process: all flow runs and threads in it share the slots.
@cache
def _semaphore(_kind: Kind, limit: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(limit)


@contextlib.contextmanager
def slot(kind: Kind, limit: int) -> Iterator[None]:
    """Wait for one of the `limit` slots of that kind, and hold it for the block."""
    with _semaphore(kind, limit):
        yield
