"""A file system of its own for the home of a run, in an image of the size of the run's disk limit: a quota that holds.

It needs root, and a container engine on this machine. Without it, the limit is watched, see `sandbox.supervision.disk`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from common.trees import SMALLEST
from sandbox.errors import BackendError
from sandbox.limits import MIB

_IMAGE = ".img"
_ROOM = 64 * MIB
"""Room for the file system's own tables, and for noticing that the run has used more than its limit."""


def mount(home: Path, disk_bytes: int | None) -> None:
    """Mount a new file system over an empty directory.

    Raises:
        BackendError: the run has no disk limit, or this process may not mount.
    """
    if not disk_bytes:
        raise BackendError("a run without a disk limit cannot have a disk of its own: set MLEBENCH_AGENT_DISK")
    image = Path(f"{home}{_IMAGE}")
    length = disk_bytes + disk_bytes // 20 + _ROOM
    with image.open("wb") as file:
        file.truncate(length)
    inodes = max(disk_bytes // SMALLEST, 1024)
    options = ["-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "-m", "0", "-N", str(inodes)]
    for command in (
        ["mkfs.ext4", "-q", "-F", *options, str(image)],
        ["mount", "-o", "loop,nodev,nosuid,noatime", str(image), str(home)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip() or "no message").splitlines()[-1]
            raise BackendError(f"a disk for the run cannot be made ({reason}): set MLEBENCH_DISK_IMAGES to false")
    (home / "lost+found").rmdir()


def unmount(path: Path) -> None:
    """Unmount the disks of runs at and below a directory. A link to one is not followed: an agent may have made it."""
    top = f"{path.parent.resolve() / path.name}"
    for mounted in _mounts():
        if (mounted == top or mounted.startswith(f"{top}/")) and Path(f"{mounted}{_IMAGE}").is_file():
            subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
            Path(f"{mounted}{_IMAGE}").unlink(missing_ok=True)


def is_mounted(home: Path) -> bool:
    """Whether a home has a file system of its own."""
    return home.is_mount()


def _mounts() -> list[str]:
    """Directories on which a disk in a file is mounted, the deepest first."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    found = (line.split()[:2] for line in lines)
    return sorted((_unescaped(where) for what, where in found if what.startswith("/dev/loop")), key=len, reverse=True)


def _unescaped(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
