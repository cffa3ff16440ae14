"""Reading a growing log file line by line."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LINE_CHARACTERS = 64 * 1024
"""Longer lines are passed on in pieces."""
LINES_PER_CALL = 1000
"""Maximum number of lines passed on in one call, so that very many of them do not delay checks of the limits."""
MAX_LINES = 10_000
"""Maximum number of lines passed on at the end. The rest is only in the file."""


class Follower:
    """Calls a function with every line that is appended to a file."""

    def __init__(self, path: Path, offset: int, on_line: Callable[[str], None] | None) -> None:
        """Follow ``path``, which need not exist yet, from ``offset`` bytes on; without ``on_line`` nothing is read."""
        self._path = path
        self._offset = offset
        self._on_line = on_line
        self._file: BinaryIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._waiting: deque[str] = deque()

    def forward(self, *, last: bool = False) -> None:
        """Pass on the next complete lines, and with ``last`` also an incomplete one at the end."""
        if self._on_line is None or not self._opened():
            return
        for _ in range(MAX_LINES if last else LINES_PER_CALL):
            if not self._has_line():
                break
            self._on_line(self._waiting.popleft().rstrip("\r"))
        if last and self._has_line():
            self._on_line("[... there is more output in the log of the run ...]")
            self._waiting.clear()
        elif last and self._rest:
            self._on_line(self._rest)
        if last:
            self._rest = ""

    def _has_line(self) -> bool:
        """Read what has been appended, unless a complete line waits; returns whether one does."""
        assert self._file is not None
        while not self._waiting and (chunk := self._file.read(LINE_CHARACTERS)):
            *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
            if len(self._rest) > LINE_CHARACTERS:
                lines.append(self._rest)
                self._rest = ""
            self._waiting += lines
        return bool(self._waiting)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def _opened(self) -> bool:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except OSError:
                return False
            self._file.seek(self._offset)
        return True
