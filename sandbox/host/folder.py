"""Where the processes of a user on one machine find each other, whatever their settings and environment are."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from sandbox.errors import BackendError

# Not XDG_RUNTIME_DIR: services do not have it, and it goes when the user logs out. Not the home: hosts may share it.
_PLACES = ("/run/lock", "/tmp")  # noqa: S108 - `private` makes a directory of our own in it


def host_folder(name: str) -> Path:
    """The directory of the host `name` for this user on this machine; created if missing.

    Raises:
        BackendError: it belongs to another user, or is open to others.
    """
    place = next(Path(each) for each in _PLACES if os.access(each, os.W_OK | os.X_OK))
    folder = private(place / f"mlebench-{os.getuid()}") / "hosts" / name.replace(os.sep, "_")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def private(folder: Path) -> Path:
    """A directory that only this user can access, in one that others can write to; created if missing.

    Raises:
        BackendError: it belongs to another user, or is open to others.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)  # whatever the umask
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise BackendError(f"{folder} must be a directory that only you can access (mode 700): remove it")
    return folder
