"""Folders to measure in, each as good as the other, whatever was written and removed on the disk before.

ext4 does not use a removed inode again for minutes, and looks at all of those near the parent folder whenever it
creates a file: right after the removal of 20,000 files, creating as many takes ten times as long. So nothing is
removed before all is measured, and each folder lies in a part of the disk of its own (`chattr +T`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import tempfile
from pathlib import Path

_GET, _SET = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
_TOP_OF_A_HIERARCHY = 0x20000  # FS_TOPDIR_FL: folders below are not related


def fresh(prefix: str, below: Path) -> Path:
    """A new folder far from all others below `below`, where the file system knows of such things."""
    descriptor = os.open(below, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            flags = struct.unpack("l", fcntl.ioctl(descriptor, _GET, struct.pack("l", 0)))[0]
            fcntl.ioctl(descriptor, _SET, struct.pack("l", flags | _TOP_OF_A_HIERARCHY))
    finally:
        os.close(descriptor)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=below))
