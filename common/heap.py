"""What the C library does with freed memory. With another library than glibc, nothing is changed."""

from __future__ import annotations

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)


def retain_freed_memory() -> None:
    """Make the C library retain up to 32 MB of freed memory.

    The system clears every page before it provides it again, which takes longer than reading and hashing a block of
    that size. Dask, which configures its workers to return memory immediately, is overruled.
    """
    _call("mallopt", _TRIM_THRESHOLD, 32 << 20)
    _call("mallopt", _MMAP_THRESHOLD, 16 << 20)


def release_freed_memory() -> None:
    """Make the C library return freed memory to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Call a function of glibc, if that is the C library."""
    with contextlib.suppress(OSError, AttributeError):
        getattr(ctypes.CDLL("libc.so.6"), name)(*arguments)
