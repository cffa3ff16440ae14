"""Copy, measure and remove directory trees, including those that an agent has written."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from common.cloning import clone
from sandbox.errors import BackendError
from sandbox.limits import GIB

COPY_BYTES = 4 * GIB
"""Data up to this size are copied for every run."""


def entries(folder: Path, skip: frozenset[str] = frozenset(), *, strict: bool = False) -> Iterator[os.DirEntry[str]]:
    """Every entry below ``folder``, at any depth; links are not followed.

    Args:
        folder: the top folder; not yielded itself.
        skip: names of entries directly in ``folder`` that are left out, with everything below them.
        strict: raise the ``OSError`` of a folder that cannot be read instead of skipping the folder.
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
    """Bytes on disk of everything below ``folder``; ``skip`` as in ``entries``.

    Allocated blocks are counted rather than lengths, so holes in sparse files do not count. Every entry counts at least
    512 bytes, so that empty files do.
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

    Files share their blocks (copy on write) where the file system supports it. Otherwise data up to ``COPY_BYTES`` are
    copied. Of larger data, files that are already read-only are hard-linked if ``may_link``, and the others are copied.
    Symbolic links are replaced by the files that they point to.

    Args:
        source: the directory; only read.
        target: created; its files and folders become read-only.
        may_link: whether hard links are acceptable: a malicious agent can change the original through one.

    Raises:
        BackendError: a link leads out of ``source``, or an entry is neither file nor folder.
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
    can_clone = True
    for file in files:
        original = (root / file).resolve()
        if can_clone:
            can_clone = clone(os.fspath(original), os.fspath(target / file))
        if not can_clone:
            if may_link and not original.stat().st_mode & 0o222:
                os.link(original, target / file)
                continue
            shutil.copyfile(original, target / file)
        (target / file).chmod(0o444)
    for folder in sorted(folders, reverse=True):
        (target / folder).chmod(0o555)


def remove_tree(path: Path) -> None:
    """Remove a directory, even one that is read-only or nested deeper than Python can follow.

    Raises:
        BackendError: something could not be removed, e.g. files of another user.
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
        raise BackendError(f"{path} could not be removed: check its owner and permissions")
