"""Create folders far from each other on the disk, on ext4.

ext4 keeps the files of a folder together, and passes over the places of files that were removed in the last minutes one
by one. Where a dataset was just removed, creating files therefore takes up to ten times as long as elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import sys

_GET, _SET = 0x80086601, 0x40086602
"""The Linux ioctls behind lsattr and chattr."""
_TOP = 0x00020000
"""The attribute T of chattr: folders in this one are placed by their names, not beside it."""


def make_apart(folder: str, nursery: str) -> None:
    """Create a folder anywhere on the disk; elsewhere than on ext4, just create it.

    The folder may exist, or be created by another process at the same time.

    Args:
        folder: the folder, whose parent exists.
        nursery: a folder on the same disk in which it is created first; a killed process leaves an empty folder there.
    """
    if os.path.isdir(folder) or sys.platform != "linux":  # noqa: PTH112
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return
    import fcntl

    descriptor = os.open(nursery, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Renaming would replace the empty folder of another process, which may be about to create a file in it.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # a network file system without locks
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        if not os.path.isdir(folder):  # noqa: PTH112
            _set_top(descriptor)
            # The same name would have the same place every time, and that of a folder that was just removed.
            somewhere = f"{nursery}/.{secrets.token_hex(6)}"
            os.mkdir(somewhere)  # noqa: PTH102
            try:
                os.rename(somewhere, folder)  # noqa: PTH104
            except OSError:
                os.rmdir(somewhere)  # noqa: PTH106
                raise
    finally:
        os.close(descriptor)


def _set_top(descriptor: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        (flags,) = struct.unpack("l", fcntl.ioctl(descriptor, _GET, bytes(8)))
        if not flags & _TOP:
            fcntl.ioctl(descriptor, _SET, struct.pack("l", flags | _TOP))
