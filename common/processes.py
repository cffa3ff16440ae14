"""Identify a process in records that outlive it. A process id alone is not enough, because ids are reused."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any


def identity() -> dict[str, Any]:
    """The calling process as plain values: the machine (since its last boot), the process id and its start time."""
    return {"machine": _machine(), "pid": os.getpid(), "started": start_time(os.getpid())}


def alive(record: dict[str, Any] | None) -> bool | None:
    """Whether the process in `record` is alive; None if it belongs to another machine or container."""
    if not record or record.get("machine") != _machine() or _machine() == "":
        return None
    started = start_time(int(record["pid"]))
    return started is not None and started == float(record["started"])


def start_time(pid: int) -> float | None:
    """Start time of a process, which together with its id identifies it. None for no such process, or a zombie.

    On Linux the unit is clock ticks since boot. `psutil.Process.create_time` adds the time of boot, which moves when
    the system clock is set, so a process that was recorded hours ago would no longer be recognised.
    """
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else float(fields[19])
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


@cache  # a constant of this machine
def boot_id() -> str:
    """The machine between two boots, the same in all containers; empty where there is no /proc."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@cache  # a constant of this machine and container
def _machine() -> str:
    """The machine between two boots, and the namespace of its process ids; empty where there is no /proc."""
    try:
        return f"{boot_id()} {os.stat('/proc/self/ns/pid').st_ino}" if boot_id() else ""  # noqa: PTH116
    except OSError:
        return ""
