"""Waiting for events of other threads and processes, with a bound that holds on a busy machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any


def until(
    holds: Callable[[], Any],
    seconds: float = 120.0,
    *,
    what: str = "what was waited for",
    may_yet: Callable[[], bool] = lambda: True,
    pause: float = 0.02,
) -> Any:
    """Wait until `holds` returns something true, and return that; fail after `seconds`, or once `may_yet` is false."""
    give_up = time.monotonic() + seconds
    while not (value := holds()):
        assert may_yet(), f"{what} can no longer happen"
        assert time.monotonic() < give_up, f"{what} did not happen within {seconds:g} seconds"
        time.sleep(pause)
    return value


def listening(port: int) -> bool:
    """Whether something listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
