"""The disk usage of a run, measured in a thread, so that measuring never delays the other limits.

A scan of the agent's home finds only files that have a name. Three more things are checked: files without a name that
the agent's processes keep open or mapped, a fall of the free space of the file system, which starts a scan at once, and
a floor of free space, at which runs are ended even if it is unknown which run uses the space. The floor bounds what a
process can hide from all of that. A quota of the file system has no such gaps, see docs/security.md.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from common import trees
from sandbox.limits import Limits
from sandbox.supervision import endings
from sandbox.supervision.endings import EndReason
from sandbox.supervision.watching import Interval
from sandbox.world import quota
from sandbox.world.files import bytes_on_disk

FREE_SPACE_SECONDS = 0.1
"""Interval between two measurements of the free space."""
PAUSE_FACTOR = 2.0
"""Pause after a scan, in multiples of its duration, if the free space keeps falling."""
SMALLEST_SHARE = 0.1
FREE_INODES = 0.02
"""Share of a file system's inodes that has to stay free."""


class DiskUse:
    """Bytes on disk that a run has added to its home, and the free space of the file system of the home."""

    def __init__(
        self,
        home: Path,
        limits: Limits,
        pids: Callable[[], Iterable[int]],
        *,
        mounted_data: bool,
    ) -> None:
        """Measure the home before the agent runs.

        Args:
            home: the agent's home.
            limits: limits of the run.
            pids: the agent's processes.
            mounted_data: whether ``data/`` is a mount that the agent cannot change, which is not measured.
        """
        self._home, self._limits, self._pids = home, limits, pids
        self._own_disk = quota.is_mounted(home)
        # The home is measured by its descriptor: where it is no mount, it can be moved away and replaced by a link.
        self._top: int | None = None
        with contextlib.suppress(OSError):
            self._top = os.open(home, trees.FOLDER)
        # The data are measured separately: they may be millions of files, and nothing should change them. Measuring
        # them takes long, so their interval is long, too.
        self._measures = [self._in_home]
        if not mounted_data:
            self._measures.append(self._in_data)
        self._intervals = [Interval(0.25, share=0.05), Interval(0.25)][: len(self._measures)]
        self._bytes_before = [0] * len(self._measures)
        if not mounted_data:
            self._bytes_before = [measure(math.inf) for measure in self._measures]
        self._bytes_now = list(self._bytes_before)
        self._peak_bytes = 0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to measure. Call it after the agent was forked, as this starts a thread."""
        self._thread = threading.Thread(target=self._watch, name="disk usage", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Measure a last time, and stop. Call it when no process of the agent is left."""
        self._closed.set()
        if self._thread:
            self._thread.join()
        if self._top is not None:
            self._measure(range(len(self._measures)))
            os.close(self._top)
            self._top = None

    def over(self) -> EndReason | None:
        """Why the run must be ended. Never waits for a measurement."""
        return self.exceeded() or self._floor()

    def exceeded(self) -> EndReason | None:
        """The end of a run that has ever used more than its limit."""
        if self._limits.disk_bytes and self._peak_bytes > self._limits.disk_bytes:
            return endings.disk_limit(self._limits)
        return None

    def full(self) -> bool:
        """Whether the run used as much as it may, so that writing more failed."""
        return bool(self._limits.disk_bytes and self._peak_bytes >= self._limits.disk_bytes)

    def _watch(self) -> None:
        while not self._closed.is_set():
            free, began = _free(self._home), time.monotonic()
            due = [index for index, interval in enumerate(self._intervals) if interval.is_due()]
            self._measure(due)
            remaining_bytes = (self._limits.disk_bytes or 0) - self._added()
            rested = time.monotonic() + PAUSE_FACTOR * (time.monotonic() - began)
            while not self._closed.wait(FREE_SPACE_SECONDS):
                if any(interval.is_due() for interval in self._intervals):
                    break
                fallen = free - _free(self._home)  # perhaps by this run
                if self._limits.disk_bytes and fallen > remaining_bytes and time.monotonic() > rested:
                    self._intervals[0].due = 0.0
                    break

    def _measure(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            stop_above = self._bytes_before[index] + self._limits.disk_bytes if self._limits.disk_bytes else math.inf
            with self._intervals[index].look():
                self._bytes_now[index] = self._measures[index](stop_above)
        self._peak_bytes = max(self._peak_bytes, self._added())

    def _added(self) -> int:
        return sum(self._bytes_now) - sum(self._bytes_before)

    def _in_home(self, enough: float) -> int:
        if self._top is None:
            return 0
        if self._own_disk:  # its file system has the exact figure
            filesystem = os.statvfs(self._top)
            return (filesystem.f_blocks - filesystem.f_bfree) * filesystem.f_frsize
        device = os.fstat(self._top).st_dev
        with contextlib.suppress(OSError):  # the home itself may be unreadable as well, see `bytes_on_disk`
            if os.fstat(self._top).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.fchmod(self._top, stat.S_IRWXU)
        named = bytes_on_disk(".", frozenset({"data"}), within=self._top, enough=enough)
        return named if named > enough else named + nameless_bytes(self._pids(), device)

    def _in_data(self, enough: float) -> int:
        return 0 if self._top is None else bytes_on_disk("data", within=self._top, enough=enough)

    def _floor(self) -> EndReason | None:
        """Below the floor, the runs that use most of their limits are ended first."""
        try:
            filesystem = os.statvfs(self._home.parent)
        except OSError:
            return None
        share = 1.0
        if self._limits.disk_bytes:
            share = min(max(self._peak_bytes / self._limits.disk_bytes, SMALLEST_SHARE), 1.0)
        bytes_left = filesystem.f_bavail * filesystem.f_frsize
        required_bytes = min(self._limits.free_bytes, _total(filesystem) // 10)
        few_inodes = filesystem.f_files and filesystem.f_favail < filesystem.f_files * FREE_INODES * share
        return endings.disk_floor(bytes_left) if bytes_left < required_bytes * share or few_inodes else None


def _total(filesystem: os.statvfs_result) -> int:
    return filesystem.f_blocks * filesystem.f_frsize


def _free(home: Path) -> int:
    try:
        filesystem = os.statvfs(home)
    except OSError:
        return 0
    return filesystem.f_bavail * filesystem.f_frsize


def nameless_bytes(pids: Iterable[int], device: int) -> int:
    """Bytes of files on a device that have no name any more and exist because these processes keep them open or mapped.

    What this process may not see (processes of other users, descriptors under way in a socket) is not counted.
    """
    bytes_by_inode: dict[int, int] = {}
    for pid in pids:
        threads = _threads(pid)
        for path in (*itertools.chain.from_iterable(map(_descriptors, threads)), *_mapped(threads)):
            with contextlib.suppress(OSError):
                status = os.stat(path)  # noqa: PTH116
                if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                    bytes_by_inode[status.st_ino] = status.st_blocks * 512
    return sum(bytes_by_inode.values())


def _threads(pid: int) -> list[str]:
    """The threads of a process: each can have descriptors of its own, and the first one can have ended."""
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    return []


def _descriptors(thread: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"/proc/{thread}/fd/{number}" for number in os.listdir(f"/proc/{thread}/fd")]  # noqa: PTH208
    return []


def _mapped(threads: list[str]) -> list[str]:
    """Removed files that a process has mapped. The first thread that has not ended shows those of all threads."""
    for thread in threads:
        with contextlib.suppress(OSError):
            if lines := Path(f"/proc/{thread}/maps").read_text(errors="replace").splitlines():
                return [f"/proc/{thread}/map_files/{line.split()[0]}" for line in lines if line.endswith("(deleted)")]
    return []
