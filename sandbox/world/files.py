"""Copy the data for a run; measure and remove directory trees, including those that an agent has written."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from common import trees
from common.cloning import clone
from sandbox.errors import BackendError
from sandbox.limits import GIB
from sandbox.world import quota

COPY_BYTES = 4 * GIB
"""Data up to this size are copied for every run."""


REMOVE_SECONDS = 600.0
"""Time for trying to remove a directory."""


def entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Every entry below a folder that nobody changes at the same time, at any depth; links are not followed.

    For folders of agents there is `common.trees.walk`. Raises `OSError` for a folder that cannot be read.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def bytes_on_disk(
    folder: Path | str, skip: frozenset[str] = frozenset(), *, within: int | None = None, enough: float = math.inf
) -> int:
    """Bytes on disk of everything below ``folder``, which an agent may change at the same time.

    Allocated blocks are counted rather than lengths, so holes in sparse files do not count. Folders that their owner
    may not read get that permission, as an agent could hide files in them from an orchestrator without root.

    Args:
        folder: the top folder; 0 if it is a link or does not exist.
        skip: names of entries directly in ``folder`` that are left out, with everything below them.
        within: descriptor of the folder that a relative path is relative to.
        enough: stop counting above this number. Otherwise, an agent that makes files all the time could keep a count
            from ending.
    """
    total = 0
    linked: set[tuple[int, int]] = set()
    with contextlib.suppress(OSError), trees.opened_folder(folder, within) as top:
        if not os.fstat(top).st_mode & stat.S_IRUSR or not os.fstat(top).st_mode & stat.S_IXUSR:
            os.fchmod(top, stat.S_IRWXU)
        for entry in trees.walk(top, skip=skip, enter=trees.readable):
            if total > enough:
                break
            status = entry.status
            if status.st_nlink > 1 and not entry.is_folder:
                if (status.st_dev, status.st_ino) in linked:
                    continue
                linked.add((status.st_dev, status.st_ino))
            total += max(status.st_blocks * 512, trees.MIN_ENTRY_BYTES)
    return total


def copy_data(source: Path, target: Path, *, may_link: bool, always_link: bool = False) -> None:
    """Give a run its own read-only copy of a directory.

    Files share their blocks (copy on write) where the file system supports it. Otherwise data up to ``COPY_BYTES`` are
    copied. Of larger data, files that are already read-only are hard-linked if ``may_link``, and the others are copied.
    Symbolic links are replaced by the files that they point to.

    Args:
        source: the directory; only read.
        target: created; its files and folders become read-only.
        may_link: whether hard links are acceptable: a malicious agent can change the original through one.
        always_link: also link small data and files that are not read-only, because the copy is mounted read-only.

    Raises:
        BackendError: a link leads out of ``source``, or an entry is neither file nor folder.
    """
    root = source.resolve()
    folders, files, total = [Path()], [], 0
    for entry in entries(root):
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
    may_link = may_link and (always_link or total > COPY_BYTES) and root.stat().st_dev == target.parent.stat().st_dev
    for folder in sorted(folders):
        (target / folder).mkdir()
    can_clone = True
    for file in files:
        original = (root / file).resolve()
        if can_clone:
            can_clone = clone(os.fspath(original), os.fspath(target / file))
        if not can_clone:
            if may_link and (always_link or not original.stat().st_mode & 0o222):
                with contextlib.suppress(OSError):  # e.g. a file of another user, or with too many links
                    os.link(original, target / file)
                    continue
            shutil.copyfile(original, target / file)
        (target / file).chmod(0o444)
    for folder in sorted(folders, reverse=True):
        (target / folder).chmod(0o555)


def remove_tree(path: Path, seconds: float = REMOVE_SECONDS) -> None:
    """Remove a directory, even one that is read-only or nested deeper than a path can say. Links are not followed.

    The disks of runs that are mounted there are unmounted first.

    Raises:
        BackendError: something could not be removed, e.g. files of another user, or not in time.
    """
    quota.unmount(path)
    try:
        with trees.opened_folder(path.parent.resolve()) as parent:
            trees.remove(path.name, parent, time.monotonic() + seconds)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BackendError(
            f"{path} could not be removed ({error.strerror or error}): check its owner and permissions"
        ) from error
