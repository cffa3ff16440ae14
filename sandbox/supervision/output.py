"""A log file of limited size for an agent's output."""

from __future__ import annotations

import contextlib
from pathlib import Path

TAIL_SHARE = 8
TAIL_BYTES = 1024**2


class CappedLog:
    """Keeps the beginning of the output, written as it arrives, and its last part, appended on closing.

    The end matters most when something went wrong. The beginning matters to users who follow the log.
    """

    def __init__(self, path: Path, limit: int) -> None:
        """Create an empty log.

        Args:
            path: file to write; must not exist.
            limit: size in bytes, not counting the one line that says how much is missing.
        """
        self._file = path.open("xb", buffering=0)
        self._limit = limit
        self._tail_limit = min(limit // TAIL_SHARE, TAIL_BYTES)
        self._room = limit - self._tail_limit
        self._tail = bytearray()
        self._left_out = 0

    def write(self, chunk: bytes) -> None:
        """Add output."""
        if self._room:
            self._put(chunk[: self._room])
        rest = chunk[self._room :]
        self._room -= len(chunk) - len(rest)
        if rest:
            self._tail += rest
            surplus = len(self._tail) - self._tail_limit
            # The tail is trimmed only when it has doubled, because moving it costs more than appending to it.
            if surplus > self._tail_limit:
                self._trim(surplus)

    def _trim(self, surplus: int) -> None:
        del self._tail[:surplus]
        self._left_out += surplus

    def restart(self) -> None:
        """Remove what has been written, to write it anew."""
        self._file.truncate(0)
        self._file.seek(0)
        self._room, self._left_out = self._limit - self._tail_limit, 0
        self._tail.clear()

    def close(self) -> None:
        """Append the last part and close the file."""
        if (surplus := len(self._tail) - self._tail_limit) > 0:
            self._trim(surplus)
        if self._left_out:
            self._put(f"\n[... {self._left_out} bytes left out: the log is full ...]\n".encode())
        self._put(bytes(self._tail))
        self._file.close()

    def _put(self, chunk: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the supervision
            self._file.write(chunk)
