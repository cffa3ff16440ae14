"""Move one file that an agent has left, whose processes have ended, out of its home."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from pathlib import Path

from common import trees

FULL = (errno.ENOSPC, errno.EDQUOT)
_REMOVE_SECONDS = 60.0


def move(name: str, folder: int, target: Path, *, copied: bool = False) -> bool:
    """Move a file, unless it is not a regular file or the target exists; returns whether it was moved.

    Args:
        name: the file.
        folder: descriptor of the folder that contains it.
        target: where to; its folders are created, and special permissions are removed.
        copied: copy the file and remove its name, as if it were on another file system.

    Raises:
        OSError: the disk is full.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            return False
        if copied:
            return _copy(name, folder, target)
        try:
            os.rename(name, target, src_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return _copy(name, folder, target)
        if not stat.S_ISREG(target.lstat().st_mode):
            with trees.opened_folder(target.parent) as parent:
                trees.remove(target.name, parent, time.monotonic() + _REMOVE_SECONDS)
            return False
        target.chmod(0o644)
    except OSError as error:
        if error.errno in FULL:
            raise
        return False  # e.g. a path too long to be used
    return True


def _copy(name: str, folder: int, target: Path) -> bool:
    """Copy a file from another file system, and remove the original."""
    part = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        with trees.opened_file(name, folder) as source, part.open("wb") as copy:
            for piece in trees.pieces(source, os.fstat(source).st_size):
                copy.write(piece)
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    os.unlink(name, dir_fd=folder)
    return True
