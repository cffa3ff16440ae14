"""Harvesting the files of an agent that has ended: regular files within limits, following no links."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from common import names
from common.units import size
from sandbox.limits import Limits
from sandbox.supervision.control import Layout
from sandbox.world.files import entries, remove_tree

OUTPUT = "agent.log"


def harvest(home: Path, log: Path, target: Path, limits: Limits) -> tuple[bool, list[str]]:
    """Move submission, logs and code out of an agent's home; its processes must have ended.

    Files are moved first and checked afterwards, so that they cannot be replaced in between. Special permissions are
    removed.

    Args:
        home: the agent's home.
        log: the agent's output; becomes ``logs/agent.log``.
        target: created; receives ``submission.csv``, ``logs/`` and ``code/``.
        limits: sizes and numbers of files.

    Returns:
        Whether there is a submission, and messages for the user: why there is none, how many files were left out.
    """
    target.mkdir(parents=True)
    notes = []
    problem = _submission(home, target / "submission.csv", limits)
    if problem:
        notes.append(problem)
    for name in ("logs", "code"):
        left_out = _folder(home / name, target / name, limits)
        if left_out:
            why = "links, special files, names that cannot be stored, or beyond the limits"
            notes.append(f"{left_out} of {name}/ left out ({why})")
    own = target / "logs" / OUTPUT
    if own.exists():
        own.rename(own.with_suffix(".own.log"))
    own.hardlink_to(log)  # needs no space, which may have run out
    return not problem, notes


def undo_harvest(layout: Layout) -> None:
    """Move harvested files back to the agent's home, so that an interrupted harvest can be repeated."""
    for path in sorted(layout.harvested.rglob("*")) if layout.harvested.is_dir() else ():
        if path.is_file() and path.name != OUTPUT:
            inside = path.relative_to(layout.harvested)
            target = layout.home / ("submission/submission.csv" if str(inside) == "submission.csv" else inside)
            with contextlib.suppress(OSError):
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
    remove_tree(layout.harvested)


def _submission(home: Path, target: Path, limits: Limits) -> str | None:
    """Move the submission; returns why there is none, or None."""
    if not _is_folder(home / "submission"):
        return (
            "no submission: submission/ is no longer a folder"
            if os.path.lexists(home / "submission")
            else "no submission: submission/ was removed"
        )
    path = home / "submission" / "submission.csv"
    try:
        status = path.lstat()
    except OSError:
        return "no submission: the agent wrote no submission/submission.csv"
    if not stat.S_ISREG(status.st_mode):
        return f"no submission: submission.csv is {_kind(status.st_mode)}, not a file"
    if status.st_size > limits.submission_bytes:
        allowed = size(limits.submission_bytes)
        return f"no submission: submission.csv has {size(status.st_size)}, more than the limit of {allowed}"
    return None if _take(path, target) else "no submission: submission.csv could not be moved"


def _folder(source: Path, target: Path, limits: Limits) -> int:
    """Move the regular files below ``source``; returns the number of entries left out."""
    target.mkdir()
    if not _is_folder(source):
        return int(os.path.lexists(source))
    chosen: list[Path] = []
    total = left_out = 0
    for entry in entries(source):
        if entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):  # the agent may have removed its own permissions
                Path(entry.path).chmod(0o700)
        elif (
            (length := _length(entry, source)) is None
            or total + length > limits.collected_bytes
            or len(chosen) >= limits.collected_files
        ):
            left_out += 1
        else:
            chosen.append(Path(entry.path))
            total += length
    for path in chosen:
        left_out += not _take(path, target / path.relative_to(source))
    return left_out


def _length(entry: os.DirEntry[str], source: Path) -> int | None:
    """Bytes in a regular file with a path below ``source`` that every store accepts; ``None`` for everything else."""
    if names.problem(Path(entry.path).relative_to(source).as_posix()):
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _take(path: Path, target: Path) -> bool:
    """Move a file, unless it is no longer a regular file; returns whether it was moved."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    except OSError:  # e.g. a path too long to be used
        return False
    if not stat.S_ISREG(target.lstat().st_mode):
        target.unlink()
        return False
    target.chmod(0o644)
    return True


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
