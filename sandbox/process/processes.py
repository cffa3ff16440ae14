"""Find, measure and kill all processes of an agent, even if they try to escape."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

RUN_MARKER = "SANDBOX_RUN"
"""Environment variable whose value names the run a process belongs to."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
KILL_SECONDS = 30.0
"""Time for trying to kill processes. Only processes of another user, or stuck in the kernel, survive that."""


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends (Linux), so that none can escape by forking twice.

    Returns whether the system supports it.
    """
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends (Linux)."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class ProcessTree:
    """The descendants of a process."""

    def __init__(self, top: int | None = None, *, complete: bool) -> None:
        """Describe the descendants of a process.

        Args:
            top: its id; by default the calling process.
            complete: whether orphans are adopted (see `adopt_orphans`). If not, every process that was seen once is
                remembered, which misses processes that fork twice between two calls.
        """
        self._complete = complete
        self._top = psutil.Process(top)
        self._seen: set[psutil.Process] = set()

    def processes(self) -> list[psutil.Process]:
        """The processes that exist now, including zombies."""
        descendants: set[psutil.Process] = set()
        with contextlib.suppress(psutil.Error):  # it has ended, and all of its descendants with it
            descendants = set(self._top.children(recursive=True))
        if not self._complete:
            for process in list(self._seen):
                if not process.is_running():
                    self._seen.discard(process)
                elif process not in descendants:
                    with contextlib.suppress(psutil.Error):
                        descendants.add(process)
                        descendants.update(process.children(recursive=True))
            self._seen |= descendants
        return list(descendants)

    def send(self, number: int) -> None:
        """Send a signal to all of them."""
        _send(self.processes(), number)

    def kill(self, reap: Callable[[], None]) -> int:
        """Kill all of them, and the processes that they start in the meantime.

        Args:
            reap: collects the exit status of children that have ended.

        Returns:
            The number of processes that could not be killed.
        """
        return _kill(self.processes, reap)


def kill_by_marker(marker: str) -> int:
    """Kill the processes of a run whose supervisor is gone; returns how many could not be killed."""
    return _kill(lambda: _marked(marker), lambda: None)


def _marked(marker: str) -> list[psutil.Process]:
    marked = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(RUN_MARKER) == marker and process.status() != psutil.STATUS_ZOMBIE:
                marked.add(process)
                marked.update(
                    child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE
                )
    return list(marked)


def _kill(find: Callable[[], list[psutil.Process]], reap: Callable[[], None]) -> int:
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        # A stopped process cannot fork. Once a search finds no new process, all of them are stopped, and none can start
        # another while they are killed.
        stopped: set[psutil.Process] = set()
        while (new := set(find()) - stopped) and time.monotonic() < deadline:
            _send(new, signal.SIGSTOP)
            stopped |= new
        _send(stopped, signal.SIGKILL)
        reap()
        survivors = find()
        if not survivors or time.monotonic() > deadline:
            return len(survivors)
        time.sleep(0.01)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            process.send_signal(number)


def memory(processes: Iterable[psutil.Process], enough: int) -> int:
    """Bytes of memory that the processes use together.

    The sum of resident sizes is cheap, but counts a shared page once per process. Only if it exceeds ``enough``, the
    proportional set sizes are added up, in which a page is divided among the processes that share it (Linux).
    """
    processes = list(processes)
    total = sum(_resident(process) for process in processes)
    return total if total <= enough else sum(_proportional(process) for process in processes)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss) or _resident_of_threads(process.pid)
    except psutil.Error:
        return 0


def _resident_of_threads(pid: int) -> int:
    """Memory of a process whose first thread has ended: the kernel shows it with the other threads only."""
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            if pages := int(Path(f"/proc/{thread}/statm").read_text().split()[1]):
                return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss)) or _resident(process)
    except (psutil.Error, OSError):
        return _resident(process)


def available_cores() -> list[int] | None:
    """CPU cores that this process may use; ``None`` where a process cannot choose its cores (macOS)."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
