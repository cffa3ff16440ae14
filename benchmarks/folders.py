"""Folders for measurements, with a speed that does not depend on files that were written and removed before.

ext4 does not reuse a removed inode for minutes, and checks all removed inodes near the parent folder whenever it
creates a file: right after 20,000 files were removed, creating as many takes ten times as long. Therefore nothing is
removed before all measurements are done, and each folder is placed in its own part of the disk (`chattr +T`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import tempfile
from pathlib import Path

_GET, _SET = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
_TOP_OF_A_HIERARCHY = 0x20000  # FS_TOPDIR_FL: subfolders are placed independently


def fresh(prefix: str, below: Path) -> Path:
    """A new folder below `below`, away from the others on the disk if the file system supports it."""
    descriptor = os.open(below, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            flags = struct.unpack("l", fcntl.ioctl(descriptor, _GET, struct.pack("l", 0)))[0]
            fcntl.ioctl(descriptor, _SET, struct.pack("l", flags | _TOP_OF_A_HIERARCHY))
    finally:
        os.close(descriptor)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=below))
