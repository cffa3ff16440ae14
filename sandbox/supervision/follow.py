"""Reading a growing log file line by line."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LINE_CHARACTERS = 64 * 1024
"""A longer line is handed on in pieces."""


class Follower:
    """Hands on what is appended to a file, one line at a time."""

    def __init__(self, path: Path, offset: int, on_line: Callable[[str], None] | None) -> None:
        """Follow ``path``, which need not exist yet, from ``offset`` bytes; do nothing if ``on_line`` is ``None``."""
        self._path = path
        self._offset = offset
        self._on_line = on_line
        self._file: BinaryIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def forward(self, *, last: bool = False) -> None:
        """Hand on the lines that are complete; with ``last`` also what follows them."""
        if self._on_line is None or not self._opened():
            return
        assert self._file is not None
        while chunk := self._file.read(LINE_CHARACTERS):
            *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
            if len(self._rest) > LINE_CHARACTERS:
                lines.append(self._rest)
                self._rest = ""
            for line in lines:
                self._on_line(line.rstrip("\r"))
        if last and self._rest:
            self._on_line(self._rest)
            self._rest = ""

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
