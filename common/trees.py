"""Walk, copy and remove trees that an attacker may have written, through descriptors of folders.

A path is looked up again whenever it is used, and any part of it may have become a link in the meantime. Here every
folder and file is opened below the open folder that contains it, without following links (``openat``, ``O_NOFOLLOW``),
so nothing outside of the tree is ever reached, however the tree changes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Non-blocking, because opening a pipe would wait for its other end."""
CHUNK = 1024**2
_OWNER_CAN_READ = stat.S_IRUSR | stat.S_IXUSR
MIN_ENTRY_BYTES = 4096
"""Minimum number of bytes that an entry counts: empty files and folders use up inodes instead of blocks."""
MAX_OPEN_FOLDERS = 64
"""Number of folders that a walk keeps open on its way down."""


class NotRegular(OSError):
    """A link, pipe, device, ... where a regular file was expected; the message says which."""


@dataclass(frozen=True)
class Entry:
    """One entry of a walk."""

    name: str
    folder: int
    """Descriptor of the folder that contains it; open until the walk continues."""
    status: os.stat_result
    """Status of the entry itself, even if it is a link."""
    above: _Level
    """The folder that contains it, for its path."""

    @property
    def path(self) -> str:
        """Path relative to the top of the walk. It is not stored: in deep folders, it may have megabytes."""
        names, level = [self.name], self.above
        while level.above is not None:
            names.append(level.name)
            level = level.above
        return "/".join(reversed(names))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and not a link to one."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.status.st_mode)


def kind(mode: int) -> str:
    """The kind of a file, for messages.

    >>> kind(stat.S_IFLNK), kind(stat.S_IFIFO)
    ('a symbolic link', 'a pipe')
    """
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


@contextlib.contextmanager
def opened_folder(path: str | Path, within: int | None = None) -> Iterator[int]:
    """Descriptor of a folder. Raises `OSError` if it is none, or a link to one."""
    descriptor = os.open(path, FOLDER, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_file(path: str | Path, within: int | None = None) -> Iterator[int]:
    """Descriptor of a regular file, for reading.

    Args:
        path: the file; only its last part is protected from being a link.
        within: descriptor of the folder that a relative path is relative to.

    Raises:
        NotRegular: it is something else.
        OSError: it cannot be opened.
    """
    before = os.stat(path, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISREG(before.st_mode):
        raise NotRegular(f"{os.fspath(path)} is {kind(before.st_mode)}")
    descriptor = os.open(path, FILE, dir_fd=within)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(f"{os.fspath(path)} is {kind(os.fstat(descriptor).st_mode)}")
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_below(top: Path, relative: Path) -> Iterator[int]:
    """Descriptor of a regular file below a folder, none of whose parts may be a link; as `opened_file`."""
    with contextlib.ExitStack() as stack:
        folder = folder_below(stack.enter_context(opened_folder(top)), relative.parts[:-1])
        stack.callback(os.close, folder)
        try:
            yield stack.enter_context(opened_file(relative.name, folder))
        except NotRegular as error:
            raise NotRegular(str(error).replace(relative.name, relative.as_posix(), 1)) from None


def folder_below(top: int, folders: Iterable[str]) -> int:
    """A new descriptor of a folder below an open one; the caller closes it.

    The folders on the way are closed at once, so that deep ones do not use up the descriptors of the process.

    Args:
        top: descriptor of the folder to start from.
        folders: the names on the way down, none of which may be a link.

    Raises:
        OSError: one of them cannot be opened.
    """
    folder = os.dup(top)
    for name in folders:
        try:
            inner = os.open(name, FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def pieces(descriptor: int, at_most: int | None = None) -> Iterator[bytes]:
    """The content of an open file, in chunks."""
    remaining_bytes = at_most
    while chunk := os.read(descriptor, CHUNK if remaining_bytes is None else min(CHUNK, remaining_bytes)):
        yield chunk
        if remaining_bytes is not None and (remaining_bytes := remaining_bytes - len(chunk)) <= 0:
            return


class _Level:
    """An open folder between the top of a walk and its current folder, and the folders in it still to enter."""

    def __init__(self, name: str, above: _Level | None, descriptor: int) -> None:
        self.name, self.above = name, above
        self.descriptor: int | None = descriptor
        self.inside: list[str] = []


def walk(
    top: int, *, skip: frozenset[str] = frozenset(), enter: Callable[[Entry], bool] = lambda _: True
) -> Iterator[Entry]:
    """Every entry below an open folder, folders before what they contain. What cannot be read is left out.

    Args:
        top: descriptor of the folder.
        skip: names of entries directly in the folder that are left out, with everything below them.
        enter: whether to go into a folder.
    """
    device = os.fstat(top).st_dev
    levels = [_Level("", None, top)]

    def listing(level: _Level) -> Iterator[Entry]:
        assert level.descriptor is not None
        with contextlib.suppress(OSError), os.scandir(level.descriptor) as children:
            for child_entry in children:
                if level.above is None and child_entry.name in skip:
                    continue
                try:
                    status = child_entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                entry = Entry(child_entry.name, level.descriptor, status, level)
                yield entry
                if entry.is_folder and status.st_dev == device and enter(entry):
                    level.inside.append(child_entry.name)

    try:
        yield from listing(levels[0])
        while levels:
            current = levels[-1]
            if not current.inside:
                _close(levels.pop(), top)
                continue
            name = current.inside.pop()
            try:
                if current.descriptor is None:
                    current.descriptor = folder_below(top, (level.name for level in levels[1:]))
                child = _Level(name, current, os.open(name, FOLDER, dir_fd=current.descriptor))
            except OSError:
                continue
            levels.append(child)
            if len(levels) > MAX_OPEN_FOLDERS + 1:
                _close(levels[-MAX_OPEN_FOLDERS - 1], top)
            yield from listing(child)
    finally:
        for level in levels:
            _close(level, top)


def _close(level: _Level, top: int) -> None:
    if level.descriptor is not None and level.descriptor != top:
        os.close(level.descriptor)
        level.descriptor = None


def unlock(name: str, folder: int) -> None:
    """Let the owner read and change a folder that may have no permissions. A link is not followed."""
    if hasattr(os, "O_PATH"):
        descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101 - `fchmod` refuses such descriptors
        finally:
            os.close(descriptor)
    else:
        os.chmod(name, 0o700, dir_fd=folder, follow_symlinks=False)


def readable(entry: Entry) -> bool:
    """Let the owner of a folder read it, for `walk`; always true."""
    if entry.status.st_mode & _OWNER_CAN_READ != _OWNER_CAN_READ:
        with contextlib.suppress(OSError):
            unlock(entry.name, entry.folder)
    return True


def remove(name: str, within: int, deadline: float) -> None:
    """Remove a file, a link or a whole folder.

    Folders are first moved up to the folder that is removed, one after the other. So neither the length of a path nor
    the number of open descriptors limits the depth that can be removed.

    Args:
        name: what to remove.
        within: descriptor of the folder that contains it.
        deadline: when to give up, on the clock of `time.monotonic`.

    Raises:
        OSError: it could not be removed; what is left of it stays under its name.
        TimeoutError: it has too many entries to be removed in time.
    """
    try:
        status = os.stat(name, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=within)
        return
    unlock(name, within)
    with opened_folder(name, within) as top:
        while folder_names := _remove_files(top, deadline):
            for folder_name in folder_names:
                unlock(folder_name, top)
                with opened_folder(folder_name, top) as folder:
                    for inner_name in _remove_files(folder, deadline):
                        unlock(inner_name, folder)  # moving a folder changes its entry for the one above it
                        os.rename(inner_name, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
                with contextlib.suppress(OSError):  # entries that the listing has missed are found by the next one
                    os.rmdir(folder_name, dir_fd=top)
    os.rmdir(name, dir_fd=within)


def _remove_files(folder: int, deadline: float) -> list[str]:
    """Remove everything in an open folder but the folders in it, whose names are returned."""
    folders: list[str] = []
    with os.scandir(folder) as children:
        for number, entry in enumerate(children):
            if number % 256 == 0 and time.monotonic() > deadline:
                raise TimeoutError("too many entries to remove them in time")
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return folders
