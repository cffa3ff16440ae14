"""Copying, measuring and removing trees of files that an agent may have written, whatever it did to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import BackendError
from sandbox.limits import GIB

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

FICLONE = 0x40049409
"""Linux ioctl: make a file share the blocks of another one, copied on write."""
COPY_BYTES = 4 * GIB
"""Up to this much data is copied for every run."""


def entries(folder: Path, skip: frozenset[str] = frozenset(), *, strict: bool = False) -> Iterator[os.DirEntry[str]]:
    """Everything below ``folder``, links not followed, at any depth.

    Args:
        folder: where to begin; not yielded itself.
        skip: names directly in ``folder`` that are left out with all below them.
        strict: raise the ``OSError`` of a folder that cannot be read, rather than pass over it.
    """
    waiting = [os.fspath(folder)]
    top = waiting[0]
    while waiting:
        here = waiting.pop()
        with contextlib.nullcontext() if strict else contextlib.suppress(OSError), os.scandir(here) as listing:
            for entry in listing:
                if here == top and entry.name in skip:
                    continue
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def bytes_on_disk(folder: Path, skip: frozenset[str] = frozenset()) -> int:
    """Bytes that all below ``folder`` occupies, ``skip`` as in ``entries``.

    Blocks are counted rather than lengths, so holes are free; every entry costs at least 512 bytes, so empty files are
    not.
    """
    total = 0
    linked: set[tuple[int, int]] = set()
    for entry in entries(folder, skip):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if (status.st_dev, status.st_ino) in linked:
                continue
            linked.add((status.st_dev, status.st_ino))
        total += max(status.st_blocks * 512, 512)
    return total


def copy_data(source: Path, target: Path, *, may_link: bool) -> None:
    """Give a run its own read-only copy of a directory.

    Blocks are shared where the file system can (copy on write). Otherwise small data are copied, and of more than
    ``COPY_BYTES`` those files are hard links that are read-only already. Symbolic links become what they point to.

    Args:
        source: the directory; only read.
        target: created; its files and folders end read-only.
        may_link: whether hard links are acceptable: an agent that means harm can change the original through one.

    Raises:
        BackendError: a link that leads out of ``source``, or something that is neither file nor folder.
    """
    root = source.resolve()
    folders, files, total = [Path()], [], 0
    for entry in entries(root, strict=True):
        path = Path(entry.path)
        if entry.is_symlink() and (path.is_dir() or not path.resolve().is_relative_to(root)):
            raise BackendError(f"{path} is a link that cannot be given to an agent: prepare the competition again")
        if entry.is_dir():
            folders.append(path.relative_to(root))
        elif entry.is_file():
            files.append(path.relative_to(root))
            total += entry.stat().st_size
        else:
            raise BackendError(f"{path} is neither a file nor a folder: prepare the competition again")
    may_link = may_link and total > COPY_BYTES and root.stat().st_dev == target.parent.stat().st_dev
    for folder in sorted(folders):
        (target / folder).mkdir()
    can_clone = fcntl is not None and hasattr(os, "sched_getaffinity")  # the ioctl is Linux's
    for file in files:
        original = (root / file).resolve()
        if can_clone:
            can_clone = _clone(original, target / file)
        if not can_clone:
            if may_link and not original.stat().st_mode & 0o222:
                os.link(original, target / file)
                continue
            shutil.copyfile(original, target / file)
        (target / file).chmod(0o444)
    for folder in sorted(folders, reverse=True):
        (target / folder).chmod(0o555)


def _clone(source: Path, target: Path) -> bool:
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            fcntl.ioctl(writer, FICLONE, reader.fileno())
        except OSError:
            return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a directory, read-only or nested deeper than Python can follow.

    Raises:
        BackendError: something is left, e.g. files of another user.
    """
    if not os.path.lexists(path):
        return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path)
    if os.path.lexists(path):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        subprocess.run(["chmod", "-R", "u+rwX", "--", path], **quiet)  # type: ignore[call-overload]
        subprocess.run(["rm", "-rf", "--", path], **quiet)  # type: ignore[call-overload]
    if os.path.lexists(path):
        raise BackendError(f"{path} could not be removed: look at its owner and permissions")
