"""File locks (flock). They work across processes, and the kernel releases them when the holder dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


def acquire(path: Path, *, shared: bool = False, wait: bool = False) -> int | None:
    """Lock a file, which is created if it is missing.

    Args:
        path: the file; only its lock is used, never its content.
        shared: take a shared lock, which excludes exclusive locks only.
        wait: wait until the lock is free instead of returning None.

    Returns:
        An open descriptor. The lock lasts until it and every copy that a child process inherited are closed. None if
        another process has the lock.

    Raises:
        OSError: the file cannot be opened.
        UserError: the file system has no locks, such as Lustre without the mount option `flock` and some of FUSE.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, mode if wait else mode | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        if error.errno not in _NO_LOCKS:
            raise
        raise UserError(
            f"the file system of {path.parent} has no file locks ({error.strerror}): put the store and "
            "MLEBENCH_SCRATCH on a disk that has them"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = False) -> Iterator[int | None]:
    """Hold the lock of `acquire` during the block; the value is the descriptor, or None if another process has it."""
    descriptor = acquire(path, shared=shared, wait=wait)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            release(descriptor)


def release(descriptor: int) -> None:
    """Release a lock of `acquire`, also for processes that inherited it.

    Closing the descriptor would not be enough: a process that another thread has forked meanwhile has a copy.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
