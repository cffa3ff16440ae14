"""The same bytes under another name without writing them again: a hard link, or blocks shared with the original."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets

_CLONE = 0x40049409  # FICLONE: on XFS, Btrfs and others


def give_name(source: str, path: str) -> bool:
    """Have `path` hold the bytes of the local file `source`, replacing what is there; False where only copying helps.

    A hard link if the file system allows it; else (another mount of it, a file with all links it can have, a file of
    another user) a clone that shares the blocks.
    """
    return _linked(source, path) or _cloned(source, path)


def partial_name(path: str) -> str:
    """Where to write what will be moved to `path`: another name for every writer, thread and machine."""
    return f"{path}.{secrets.token_hex(6)}.partial"


def _linked(source: str, path: str) -> bool:
    try:
        try:
            os.link(source, path)
        except FileExistsError:
            os.unlink(path)  # noqa: PTH108
            os.link(source, path)
    except OSError:
        return False
    return True


def _cloned(source: str, path: str) -> bool:
    partial = partial_name(path)
    try:
        with open(source, "rb") as original, open(partial, "wb") as copy:  # noqa: PTH123
            fcntl.ioctl(copy.fileno(), _CLONE, original.fileno())
        os.replace(partial, path)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)  # noqa: PTH108
        return False
    return True
