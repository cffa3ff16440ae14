"""Create folders and files where the disk is quick, on ext4.

ext4 keeps the files of a folder together, and passes over the places of files that were removed in the last minutes one
by one. Where a dataset was just removed, creating files therefore takes many times as long as elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import secrets
import struct
import sys
import time
from functools import cache
from typing import Any

_GET, _SET = 0x80086601, 0x40086602
"""The Linux ioctls behind lsattr and chattr."""
_TOP = 0x00020000
"""The attribute T of chattr: folders in this one are placed by their names, not beside it."""
_HERE, _NO_REPLACE = -100, 1
"""Of renameat2: relative to the working directory, and to a name that is free."""

_SLOW = 30e-6
"""Seconds that creating a file takes in a bad place. Elsewhere it takes some 10 microseconds."""
_SLOWEST = 1e-3  # where this is not enough, another place is no better
_PATIENCE = 8  # slow ones, less the quick ones since then, after which the place is left
_SOON = 32  # files or folders; a place that is left before is no better than the one before
_TRIES = 6  # such places in a row: then a place, first of all the own one, may be twice as slow
_MANY = 1_000  # files or folders, after which a better place is looked for again; then twice as many, and so on
_MOST = 8_000


class Births:
    """Creates files and folders at their own place, or, while that is slow, elsewhere on the disk, and moves them.

    Moving costs less than creating. Files and folders stay on the disk where they were created, and so do the files
    that are created in such a folder later.

    Args:
        nursery: a folder on the same disk, for folders in which to create; the caller removes it. Without one,
            everything is created at its place.
    """

    def __init__(self, nursery: str | None = None) -> None:
        self._nursery = nursery
        self._numbers = itertools.count()
        self._elsewhere: str | None = None
        self._born: set[str] = set()
        """The folders that were created there or in such a folder: files in them are there as well."""
        self._limit = _SLOW
        self._slow = self._count = self._vain = 0
        self._until_again = self._patience = _MANY

    def file(self, path: str, data: bytes) -> bool:
        """Write a complete new file. Returns False, and leaves no file, if it does not fit.

        Raises:
            FileExistsError: the file exists; where files are moved, it is replaced instead.
        """
        born = self._birthplace(path)
        begin = time.perf_counter()
        descriptor = os.open(born, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        took = time.perf_counter() - begin
        try:
            whole = os.write(descriptor, data) == len(data)
        except BaseException:
            os.unlink(born)  # noqa: PTH108
            raise
        finally:
            os.close(descriptor)
        if not whole:
            os.unlink(born)  # noqa: PTH108
        elif born != path:
            os.replace(born, path)  # noqa: PTH105
        self._note(took)
        return whole

    def folder(self, path: str) -> None:
        """Create a folder and those above it, unless they exist."""
        above = os.path.dirname(path)  # noqa: PTH120
        if self._elsewhere is not None:  # what exists must not be replaced
            if os.path.isdir(path):  # noqa: PTH112
                return
            self.folder(above)
        try:
            self._folder(path)
        except (FileNotFoundError, NotADirectoryError):  # found out here, because the one above is usually there
            if above == path:
                raise
            self.folder(above)
            self._folder(path)

    def _folder(self, path: str) -> None:
        born = self._birthplace(path)
        begin = time.perf_counter()
        try:
            os.mkdir(born)  # noqa: PTH102
        except OSError:  # some systems have another error than EEXIST for what exists, such as EROFS
            if os.path.isdir(path):  # noqa: PTH112
                return
            raise
        took = time.perf_counter() - begin
        if born != path:
            _move(born, path)
        if self._elsewhere is not None:  # or it is in a folder that was created there
            self._born.add(path)
        self._note(took)

    def _birthplace(self, path: str) -> str:
        if self._elsewhere is None or path[: path.rindex("/")] in self._born:
            return path
        return f"{self._elsewhere}/{next(self._numbers)}"

    def _note(self, seconds: float) -> None:
        self._count += 1
        self._until_again -= 1
        if seconds > self._limit:
            self._slow += 1
        elif self._slow:
            self._slow -= 1
        if not self._until_again:
            self._limit, self._patience = _SLOW, min(2 * self._patience, _MOST)
            self._until_again = self._patience
        if not self._nursery or self._slow < _PATIENCE:
            return
        self._vain = self._vain + 1 if self._count < _SOON else 0
        self._slow = self._count = 0
        self._elsewhere = None
        self._born.clear()
        if self._vain < _TRIES:
            elsewhere = f"{self._nursery}/births-{secrets.token_hex(6)}"
            make_apart(elsewhere, self._nursery)
            self._elsewhere = elsewhere
            return
        self._limit, self._vain = 2 * self._limit, 0
        if self._limit > _SLOWEST:
            self._nursery = None


def make_apart(folder: str, nursery: str) -> None:
    """Create a folder anywhere on the disk; elsewhere than on ext4, just create it.

    The folder may exist, or be created by another process at the same time.

    Args:
        folder: the folder, whose parent exists.
        nursery: a folder on the same disk in which it is created first; a killed process leaves an empty folder there.
    """
    if os.path.isdir(folder) or sys.platform != "linux":  # noqa: PTH112
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return
    _let_names_tell_places(nursery)
    # The same name would have the same place every time, and that of a folder that was just removed.
    somewhere = f"{nursery}/.{secrets.token_hex(6)}"
    os.mkdir(somewhere)  # noqa: PTH102
    _move(somewhere, folder)


def _move(new: str, folder: str) -> None:
    """Give a new folder its final name; create one there if that fails. None that another process created is replaced.

    That process may be about to create a file in it.
    """
    try:
        _rename(new, folder)
    except OSError:
        os.rmdir(new)  # noqa: PTH106
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103


def _rename(path: str, new: str) -> None:
    """Rename what must not replace anything. Raises `OSError` if there is something, or where the system cannot."""
    rename = _renameat2()
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(_HERE, os.fsencode(path), _HERE, os.fsencode(new), _NO_REPLACE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), new)


@cache
def _renameat2() -> Any:
    """The system call, which Python does not have; None elsewhere than on Linux."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None


def _let_names_tell_places(folder: str) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            (flags,) = struct.unpack("l", fcntl.ioctl(descriptor, _GET, bytes(8)))
            if not flags & _TOP:
                fcntl.ioctl(descriptor, _SET, struct.pack("l", flags | _TOP))
        finally:
            os.close(descriptor)
