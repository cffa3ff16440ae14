"""Which process is meant, for records that outlive it: a pid alone is used again."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any


def identity() -> dict[str, Any]:
    """The calling process as plain values: machine (since its last start), pid and when the process began."""
    return {"machine": _machine(), "pid": os.getpid(), "started": _started(os.getpid())}


def alive(record: dict[str, Any] | None) -> bool | None:
    """Whether the process in `record` lives; None if that cannot be told from here (another machine, or container)."""
    if not record or record.get("machine") != _machine() or _machine() == "":
        return None
    started = _started(int(record["pid"]))
    return started is not None and started == record["started"]


@cache
def _machine() -> str:
    """The machine between two starts, and the namespace of its pids; empty where there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process began, in clock ticks since the machine did; None if there is no such process, or a dead one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
