"""The same bytes under another name without writing them again: a hard link, or blocks shared with the original."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable

_CLONE = 0x40049409  # FICLONE: on XFS, Btrfs and others


def give_name(source: str, path: str, draft: Callable[[], str]) -> bool:
    """Have `path` hold the bytes of the local file `source`, replacing what is there; False where only copying helps.

    `draft` makes another name, of a file that does not exist, on the same file system.

    A hard link if the file system allows it; else (another mount of it, a file with all links it can have, a file of
    another user) a clone that shares the blocks.
    """
    return _linked(source, path) or _cloned(source, path, draft())


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


def _cloned(source: str, path: str, draft: str) -> bool:
    try:
        with open(source, "rb") as original, open(draft, "wb") as copy:  # noqa: PTH123
            fcntl.ioctl(copy.fileno(), _CLONE, original.fileno())
        os.replace(draft, path)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108
        return False
    return True
