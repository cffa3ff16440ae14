"""Uses of a folder of data: one file per user, locked while the user's process is alive.

    <uses>/<id>.json   locked (flock) by the process that uses the data; says what continues without that process

The kernel releases the lock when the process ends, however it ends. A use therefore does not outlive its process,
whether that was killed or the machine restarted, and processes in different containers see each other's uses. A run in
a container continues when its orchestrator is killed. Its use therefore names the work directory of the run and the
latest time at which the run ends, and counts until the directory is removed, the time is reached, or the machine was
restarted. On the same machine the time since its start is compared, so that setting the clock does not end a use.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import plain_json
from common.locks import acquire
from common.processes import boot_id


@dataclass(frozen=True)
class Continuing:
    """A run that continues to use the data when this process is killed."""

    workdir: Path
    """The work directory of the run, on this machine. It is removed when the files of the run are stored."""
    seconds: float
    """The maximum time until the run ends, from now."""


@contextlib.contextmanager
def use(folder: Path, continuing: Continuing | None = None) -> Iterator[None]:
    """Count as a user in `folder`, which is created, during the block; `continuing` counts if this process is killed.

    The caller prevents, with a lock of its own, that the data are removed at the same time.
    """
    path = folder / f"{uuid.uuid4().hex}.json"
    draft = path.with_suffix(".draft")
    lock = _locked_draft(draft)  # before others can see it
    try:
        draft.write_text(plain_json.dumps(_record(continuing)))
        draft.chmod(0o644)  # other users may check whether it is locked
        draft.rename(path)
        yield
    finally:
        for file in (draft, path):
            file.unlink(missing_ok=True)
        os.close(lock)
        _remove_empty(folder)


def in_use(folder: Path, shared: bool = False) -> bool:
    """Whether anybody uses the data. Files of users that are gone are removed. A missing folder has no users.

    `shared` says that several machines share the folder: a run of another boot may then continue on another machine.
    """
    living = [path for path in _users(folder) if _lives(path, shared)]
    if not living:
        _remove_empty(folder)
    return bool(living)


def _users(folder: Path) -> list[Path]:
    """The files of users. `Path.glob` fails if another process removes the empty folder at the same time."""
    try:
        return [path for path in folder.iterdir() if path.suffix == ".json"]
    except FileNotFoundError:
        return []


def _locked_draft(draft: Path) -> int:
    """Create and lock a file. Another user may remove the folder at any time while it is empty."""
    while True:
        draft.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            lock = acquire(draft)
            assert lock is not None
            return lock


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it has other users, or belongs to one
        folder.rmdir()


def _record(continuing: Continuing | None) -> dict[str, Any]:
    if continuing is None:
        return {}
    record: dict[str, Any] = {"workdir": str(continuing.workdir.absolute()), "boot": boot_id()}
    record["until"] = time.time() + continuing.seconds
    if (uptime := _uptime()) is not None:
        record["until_uptime"] = uptime + continuing.seconds
    return record


def _uptime() -> float | None:
    """Seconds since the machine was started, which setting the clock does not change; None if unknown."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None and boot_id() else None


def _lives(path: Path, shared: bool) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: needs no right to write
            if _continues(json.load(file), shared):
                return True
    except FileNotFoundError:  # it ended meanwhile
        return False
    except ValueError:  # torn by a power cut
        pass
    except OSError:  # locked by its user, or another user's file that cannot be read
        return True
    with contextlib.suppress(OSError):  # another user's folder
        path.unlink()
    return False


def _continues(record: dict[str, Any], shared: bool) -> bool:
    """Whether a run continues without the process that started it."""
    same_boot, uptime = record.get("boot", boot_id()) == boot_id(), _uptime()
    if same_boot and uptime is not None and "until_uptime" in record:
        over = record["until_uptime"] <= uptime
    else:
        over = (record.get("until") or 0) <= time.time()
    if over:
        return False
    if not same_boot:
        return shared
    return "workdir" in record and Path(record["workdir"]).is_dir()
