"""Finding, measuring and ending all the processes of an agent, which may not want to be found or ended."""

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
END_SECONDS = 30.0
"""How long ending processes is tried; only processes stuck in the kernel or of another user outlive it."""


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends (Linux), so that forking twice is no way out."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends (Linux)."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def born(pid: int) -> float | None:
    """When the process started, in a unit that changes of the clock do not touch; ``None`` if it does not live."""
    if sys.platform.startswith("linux"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else float(fields[19])  # clock ticks since boot
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


class Family:
    """The descendants of this process."""

    def __init__(self, *, complete: bool) -> None:
        """Remember whose descendants.

        Args:
            complete: whether orphans are adopted. If they are not, those once seen are remembered, which misses what
                forks twice between two looks.
        """
        self._complete = complete
        self._me = psutil.Process()
        self._seen: set[psutil.Process] = set()

    def members(self) -> list[psutil.Process]:
        """Those alive now, including ones that ended and nobody asked after yet."""
        found = set(self._me.children(recursive=True))
        if not self._complete:
            for process in list(self._seen):
                if not process.is_running():
                    self._seen.discard(process)
                elif process not in found:
                    with contextlib.suppress(psutil.Error):
                        found.add(process)
                        found.update(process.children(recursive=True))
            self._seen |= found
        return list(found)

    def send(self, number: int) -> None:
        """Send everyone a signal."""
        _send(self.members(), number)

    def end(self, reap: Callable[[], None]) -> int:
        """Kill everyone, and whoever they manage to start meanwhile.

        Args:
            reap: collects the exit status of children that ended.

        Returns:
            How many could not be ended.
        """
        return _end(self.members, reap)


def end_marked(marker: str) -> int:
    """Kill the processes of a run that nobody is the parent of any more; how many could not be ended."""
    return _end(lambda: _marked(marker), lambda: None)


def _marked(marker: str) -> list[psutil.Process]:
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(RUN_MARKER) == marker and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
                found.update(
                    child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE
                )
    return list(found)


def _end(members: Callable[[], list[psutil.Process]], reap: Callable[[], None]) -> int:
    give_up = time.monotonic() + END_SECONDS
    while True:
        # A frozen process cannot fork. Only when a look finds nobody new is everyone frozen, and killing meets no
        # successor.
        frozen: set[psutil.Process] = set()
        while (new := set(members()) - frozen) and time.monotonic() < give_up:
            _send(new, signal.SIGSTOP)
            frozen |= new
        _send(frozen, signal.SIGKILL)
        reap()
        left = members()
        if not left or time.monotonic() > give_up:
            return len(left)
        time.sleep(0.01)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            process.send_signal(number)


def memory(processes: Iterable[psutil.Process], enough: int) -> int:
    """Bytes of memory the processes hold together.

    Resident sizes count shared pages once a process, which is cheap and too much; only when that sum is above
    ``enough`` are pages divided among those who share them (proportional set size, Linux).
    """
    processes = list(processes)
    total = sum(_resident(process) for process in processes)
    return total if total <= enough else sum(_proportional(process) for process in processes)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except (psutil.Error, OSError):
        return _resident(process)


def available_cores() -> list[int] | None:
    """CPU cores this process may use; ``None`` where they cannot be chosen (macOS)."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
