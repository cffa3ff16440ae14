"""A file system of its own for the home of a run, in an image of the size of the run's disk limit.

The kernel then enforces the limit. This needs root, and a container engine on this machine. Otherwise, the disk usage
is measured, see `sandbox.supervision.disk`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from common.trees import MIN_ENTRY_BYTES
from sandbox.errors import BackendError
from sandbox.limits import MIB

_IMAGE_SUFFIX = ".img"
_SPARE_BYTES = 64 * MIB
"""Space for the file system's own tables, and for noticing that the run has used more than its limit."""


def mount(home: Path, disk_bytes: int | None) -> None:
    """Mount a new file system over an empty directory.

    Raises:
        BackendError: the run has no disk limit, or this process may not mount.
    """
    if not disk_bytes:
        raise BackendError("a run without a disk limit cannot have a disk of its own: set MLEBENCH_AGENT_DISK")
    image = Path(f"{home}{_IMAGE_SUFFIX}")
    length = disk_bytes + disk_bytes // 20 + _SPARE_BYTES
    with image.open("wb") as file:
        file.truncate(length)
    inodes = max(disk_bytes // MIN_ENTRY_BYTES, 1024)
    options = ["-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "-m", "0", "-N", str(inodes)]
    for command in (
        ["mkfs.ext4", "-q", "-F", *options, str(image)],
        ["mount", "-o", "loop,nodev,nosuid,noatime", str(image), str(home)],
    ):
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode:
            reason = (completed.stderr.strip() or "no message").splitlines()[-1]
            raise BackendError(f"a disk for the run cannot be made ({reason}): set MLEBENCH_DISK_IMAGES to false")
    (home / "lost+found").rmdir()


def unmount(path: Path) -> None:
    """Unmount the disks of runs at and below a directory. A link to one is not followed: an agent may have made it."""
    top = f"{path.parent.resolve() / path.name}"
    for mounted in _mounts():
        if (mounted == top or mounted.startswith(f"{top}/")) and Path(f"{mounted}{_IMAGE_SUFFIX}").is_file():
            subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
            Path(f"{mounted}{_IMAGE_SUFFIX}").unlink(missing_ok=True)


def is_mounted(home: Path) -> bool:
    """Whether a home has a file system of its own."""
    return home.is_mount()


def _mounts() -> list[str]:
    """Directories on which a disk in a file is mounted, the deepest first."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    mounts = (line.split()[:2] for line in lines)
    return sorted(
        (_unescaped(directory) for device, directory in mounts if device.startswith("/dev/loop")), key=len, reverse=True
    )


def _unescaped(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
