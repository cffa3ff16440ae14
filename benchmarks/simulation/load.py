"""Slowdown of a process tree by other load on the machine, from Linux's statistics of the time waited for a CPU."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psutil

_INTERVAL = 0.5  # seconds between two observations; shorter-lived threads are missed


class Load:
    """Observes a process tree in a thread until `stop` is called."""

    def __init__(self, pid: int) -> None:
        self._tree = psutil.Process(pid)
        self._seen: dict[str, tuple[int, int]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """The slowdown: CPU time plus time spent waiting for a CPU, divided by CPU time; 1 if unknown."""
        self._over.set()
        self._thread.join()
        ran, waited = (sum(column) for column in zip(*self._seen.values(), strict=True)) if self._seen else (0, 0)
        return (ran + waited) / ran if ran else 1.0

    def _look(self) -> None:
        while not self._over.wait(_INTERVAL):
            with contextlib.suppress(psutil.Error):
                for process in [self._tree, *self._tree.children(recursive=True)]:
                    for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                        with contextlib.suppress(OSError, ValueError):
                            ran, waited, _ = map(int, path.read_text().split())  # nanoseconds since the thread began
                            self._seen[str(path)] = (ran, waited)
