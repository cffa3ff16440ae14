"""How many of a kind may work at one time in this process: network, disk and agents, each with its own limit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Literal

from common.settings import get_settings

Kind = Literal["downloads", "preparations", "agents"]


@cache
def _semaphore(kind: Kind) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(getattr(get_settings(), kind))


@contextlib.contextmanager
def slot(kind: Kind) -> Iterator[None]:
    """Wait for a free place of that kind and hold it for the block."""
    with _semaphore(kind):
        yield
