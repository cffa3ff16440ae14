"""The messages between a run's services in a process of their own and the orchestrator: JSON, one a line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import IO, Any

from common import plain_json
from common.plain_json import parse_json

LINE_BYTES = 1 << 20
"""Longer lines end the connection, because the other side cannot be trusted any more."""


class Sender:
    """Writes messages to a descriptor. Thread-safe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        """Write a message. Raises `OSError` if the other side is gone."""
        rest = plain_json.dumps(message).encode() + b"\n"
        with self._lock:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


def received(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield messages until the other side ends, or sends something else."""
    while True:
        line = stream.readline(LINE_BYTES)
        if not line.endswith(b"\n"):
            return
        try:
            message = parse_json(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        yield message
