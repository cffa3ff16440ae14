"""Directories in which the processes of a user on one machine find each other, whatever their settings are."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from sandbox.errors import BackendError

# XDG_RUNTIME_DIR is not used: services lack it, and it is removed when the user logs out. Hosts may share a home.
_PARENTS = ("/run/lock", "/tmp")  # noqa: S108 - `private` makes a directory of our own in it
NAMES = 100
"""Number of names of a directory that are tried in order."""


def host_folder(name: str) -> Path:
    """The directory of the host `name` for this user on this machine; created if missing."""
    parent = next(Path(directory) for directory in _PARENTS if os.access(directory, os.W_OK | os.X_OK))
    folder = private(parent) / "hosts" / name.replace(os.sep, "_")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def socket_folder(workdir: Path) -> Path:
    """The directory for a run's sockets, the same at every call; created if missing.

    It is not in the work directory, whose path may be too long for a socket.
    """
    base = private(Path(tempfile.gettempdir()))
    folder = base / hashlib.blake2b(os.fsencode(workdir.absolute()), digest_size=8).hexdigest()
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)  # whatever the umask: agents may have another user
    return folder


def private(place: Path) -> Path:
    """The directory that only this user can access in one that others can write to, too; created if missing.

    Other users may have taken its usual name. It then has the next one that is free, so that processes that start at
    the same time agree, or a random one if they have taken very many.

    Raises:
        BackendError: the file system of `place` has no permissions.
    """
    usual = place / f"mlebench-{os.getuid()}"
    if own_folder := _ours(usual):
        return own_folder
    for folder in (usual, *(place / f"{usual.name}-{number}" for number in range(1, NAMES))):
        try:
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # whatever the umask
        except FileExistsError:
            if not _is_ours(folder):
                continue
        break
    else:
        tempfile.mkdtemp(prefix=f"{usual.name}-", dir=place)
    if own_folder := _ours(usual):
        return own_folder
    raise BackendError(f"no directory in {place} can be kept from other users: set TMPDIR to a local disk")


def _ours(usual: Path) -> Path | None:
    return next(filter(_is_ours, (usual, *sorted(usual.parent.glob(f"{usual.name}-*")))), None)


def _is_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
