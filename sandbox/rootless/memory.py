"""Memory that no process is shown to have, for runs without a cgroup: shared pages, and what the machine has left.

Pages of a shared mapping without a file stay when a process lets go of them, and do not count as its resident memory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from sandbox.limits import MIB

PROC = Path("/proc")
FLOOR_BYTES, FLOOR_SHARE = 512 * MIB, 20
"""Runs are ended if less than this, or than this part of the memory, is left: before the kernel ends any process."""
_SHARED = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) ...s ([0-9a-f]+) (\S+ \d+) +/dev/zero", re.M)
"""A line of `/proc/PID/maps` of a shared mapping without a file: its addresses, offset, device and inode."""


def shared_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """Size of all shared mappings without a file, each counted once, whether or not it is filled.

    Args:
        pids: processes; those that have ended, or may not be looked at, have none.
        proc: where the process file system is.
    """
    sizes: dict[bytes, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for start, end, offset, file in _SHARED.findall((proc / f"{pid}/maps").read_bytes()):
                size = int(end, 16) - int(start, 16) + int(offset, 16)
                sizes[file] = max(size, sizes.get(file, 0))
    return sum(sizes.values())


def scarce(proc: Path = PROC) -> int | None:
    """Bytes that the machine can still give to programs, if these are less than the floor; otherwise None."""
    words = dict(line.split(":") for line in (proc / "meminfo").read_text("ascii").splitlines())
    total, left = (int(words[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return left if left < min(FLOOR_BYTES, total // FLOOR_SHARE) else None
