"""How long this process waits for servers: the setting MLEBENCH_PATIENCE, and what follows from it for one request.

A server that accepts a connection and never answers, or whose packets are dropped, costs the timeout of each request.
Those who set a short patience do not want to wait for the usual timeouts.
"""

from __future__ import annotations

HOUR = 3600.0
MIN_REQUEST_SECONDS = 3.0
"""The shortest timeout of a request: a busy server takes seconds."""

_seconds = HOUR


def configure(seconds: float) -> None:
    """Use this patience in this process, in seconds. Idempotent."""
    global _seconds
    _seconds = seconds


def patience() -> float:
    """Seconds for which requests are repeated while something does not answer."""
    return _seconds


def request_timeout(usual: float) -> float:
    """The timeout of a request in seconds: the usual one, or half of the patience, because there is a second try.

    >>> request_timeout(60.0)
    60.0
    """
    return min(usual, max(patience() / 2, MIN_REQUEST_SECONDS))
