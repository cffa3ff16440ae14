"""Signals between a test and the processes that it starts: named pipes, so that nobody polls."""

from __future__ import annotations

import os
import select
from pathlib import Path


class Gate:
    """A named pipe. A shell waits for it to open by `read < PATH`, and opens it by `echo > PATH`."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR)  # open at both ends, so that neither side blocks in opening it

    def open(self) -> None:
        """Let one process pass that waits for the gate, now or later."""
        os.write(self._pipe, b"\n")

    def wait(self, seconds: float = 120.0) -> None:
        """Return once a process has opened the gate."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        assert ready, f"not opened within {seconds:.0f} s"
        os.read(self._pipe, 1)
