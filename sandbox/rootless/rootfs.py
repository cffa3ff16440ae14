"""What a root file system must have, so that runs can start in it."""

from __future__ import annotations

import contextlib
import math
import os
import stat
from pathlib import Path

from common import trees
from sandbox.errors import BuildError
from sandbox.rootless.archives import Content

FOLDERS = ("dev", "etc", "home", "proc", "run", "sys", "tmp", "var", "var/tmp")
FILES = ("etc/group", "etc/hosts", "etc/hostname", "etc/passwd", "etc/resolv.conf")
"""What something is mounted on: in every root, these are real folders and files, not links."""
SHELLS = ("bin/sh", "usr/bin/sh")
MAX_VARIABLES, MAX_VARIABLE_BYTES = 500, 64 << 10
"""Environment of an image. The arguments of bubblewrap, which has no more than 9000, have room for it."""


def require_usable(source: str, content: Content, rootfs: Path) -> None:
    """Refuse what no run could start in. Raises `BuildError`."""
    if not any(os.path.lexists(rootfs / shell) for shell in SHELLS):
        raise BuildError(f"{source} cannot be used: it has no /bin/sh, so it is empty or no root file system")
    variables = content.environment.items()
    for name, value in variables:
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            usable = False
        else:
            usable = name != "" and "\0" not in name + value
        if not usable:
            raise BuildError(f"{source} cannot be used: no process can have its environment variable {name[:80]!a}")
    size = sum(len(f"{name}={value}".encode()) for name, value in variables)
    if len(variables) > MAX_VARIABLES or size > MAX_VARIABLE_BYTES:
        raise BuildError(
            f"{source} cannot be used: it sets {len(variables)} environment variables of {size} bytes, and at most "
            f"{MAX_VARIABLES} of {MAX_VARIABLE_BYTES} bytes together are possible"
        )


def make_mount_points(top: int) -> None:
    """Replace what is no real folder or file, and make what is missing; see `FOLDERS`."""
    for path in (*FOLDERS, *FILES):
        *above, name = path.split("/")
        wanted = stat.S_IFREG if path in FILES else stat.S_IFDIR
        folder = trees.folder_below(top, above)
        try:
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) == wanted:
                    continue
            trees.remove(name, folder, math.inf)
            if path in FILES:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
            else:
                os.mkdir(name, 0o755, dir_fd=folder)
        finally:
            os.close(folder)
