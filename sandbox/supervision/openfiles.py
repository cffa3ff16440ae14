"""The machine's table of open files (``fs.file-max``), which all its processes share.

A limit for each process bounds what the processes of a run can open, if the table is large enough for that. Files that
are mapped or on their way through a socket need no descriptor, so runs are ended when the table is nearly full, those
that have most open first, as with the free space of the disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from sandbox.supervision import endings
from sandbox.supervision.endings import EndReason

TABLE = Path("/proc/sys/fs/file-nr")
MIN_FILES, MAX_FILES = 1024, 4096
"""The number that programs expect at least, and the kernel's own hard limit, which some engines cannot raise."""
AGENT_SHARE = 0.5
"""Share of the table that is for agents."""
FREE_SHARE = 0.2
"""Share of the table that has to stay free, for a run that has all of the agents' share open."""
SMALLEST_SHARE = 0.1


def limit(processes: int | None, slots: int) -> int:
    """Open files of each process, so that all processes of all runs of a host stay below half of the table.

    Args:
        processes: limit of the processes of a run.
        slots: number of runs at the same time.
    """
    _, capacity = _table()
    return int(min(max(capacity * AGENT_SHARE // ((processes or MIN_FILES) * slots), MIN_FILES), MAX_FILES))


def floor(pids: Callable[[], Iterable[int]]) -> EndReason | None:
    """Why a run with these processes must be ended, because the table is nearly full."""
    used, capacity = _table()
    if capacity - used > capacity * FREE_SHARE:
        return None
    own_files = sum(map(_files, pids()))
    share = min(max(own_files / (capacity * AGENT_SHARE), SMALLEST_SHARE), 1.0)
    return endings.files_floor(capacity - used, own_files) if capacity - used < capacity * FREE_SHARE * share else None


def _table() -> tuple[int, int]:
    """The number of open files, and the maximum."""
    try:
        used, _, capacity = map(int, TABLE.read_text().split())
    except (OSError, ValueError):  # no Linux
        return 0, 1 << 62
    return used, capacity


def _files(pid: int) -> int:
    """Descriptors and mapped files of a process, as far as this process may see them."""
    count = 0
    with contextlib.suppress(OSError):
        count += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
        with Path(f"/proc/{pid}/maps").open("rb") as lines:
            count += sum(b"/" in line for line in lines)
    return count
