"""Give a file a second name without copying its bytes: as a hard link, or as a clone that shares its blocks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

_FICLONE = 0x40049409
"""The Linux ioctl that lets a file share the blocks of another one, copied on write (XFS, Btrfs and others)."""


def link_or_clone(source: str, path: str, draft: Callable[[], str]) -> bool:
    """Make `path` a hard link to the local file `source`, or else a clone of it. An existing file is replaced.

    Cloning is tried if the file system refuses the link: `source` is on another mount of it, has the maximum number of
    links, or belongs to another user.

    Args:
        source: the file to share.
        path: the new name, on the same file system.
        draft: returns a name that does not exist yet, on the same file system; the clone is made there first.

    Returns:
        Whether it worked. If not, the caller has to copy the bytes.
    """
    if _link(source, path):
        return True
    temporary = draft()
    if not clone(source, temporary):
        return False
    try:
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        return False
    return True


def clone(source: str, target: str) -> bool:
    """Create `target` as a clone of `source`; returns False, and leaves no file, where the system cannot clone."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        with open(source, "rb") as original, open(target, "wb") as copy:  # noqa: PTH123
            fcntl.ioctl(copy.fileno(), _FICLONE, original.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(target)  # noqa: PTH108
        return False
    return True


def _link(source: str, path: str) -> bool:
    try:
        try:
            os.link(source, path)
        except FileExistsError:
            os.unlink(path)  # noqa: PTH108
            os.link(source, path)
    except OSError:
        return False
    return True
