"""Settings of the C library for freed memory. With another library than glibc, nothing is changed."""

from __future__ import annotations

import contextlib
import ctypes

# M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX of mallopt(3)
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def retain_freed_memory() -> None:
    """Make the C library retain up to 128 MB of freed memory, for all threads together.

    The system clears every page before it provides it again, which takes longer than reading and hashing a block of
    that size. By default each thread gets memory from heaps of its own, of at most 64 MB, and a heap that is empty is
    returned whatever the thresholds are: threads that free what they read would get cleared pages again and again.
    Dask, which configures its workers to return memory immediately, is overruled.
    """
    _call("mallopt", _TRIM_THRESHOLD, 128 << 20)
    _call("mallopt", _MMAP_THRESHOLD, 32 << 20)
    _call("mallopt", _ARENA_MAX, 1)


def release_freed_memory() -> None:
    """Make the C library return freed memory to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Call a function of glibc, if that is the C library."""
    with contextlib.suppress(OSError, AttributeError):
        getattr(ctypes.CDLL("libc.so.6"), name)(*arguments)
