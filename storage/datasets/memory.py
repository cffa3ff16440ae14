"""Memory of workers. Freed blocks are retained for the next file, and released to the system after a dataset."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)


def retain_freed_memory() -> None:
    """Make the C library retain up to 32 MB of freed memory.

    Dask configures its workers to return memory to the system immediately. The system clears every page before it
    provides it again, which takes longer than reading and hashing a block of that size.
    """
    with _glibc() as library:
        library.mallopt(_TRIM_THRESHOLD, 32 << 20)
        library.mallopt(_MMAP_THRESHOLD, 16 << 20)


@contextlib.contextmanager
def passing_over_what_exists() -> Iterator[None]:
    """Have garbage collections in the block look at new objects only: modules are many, and none of them is garbage."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def release_memory() -> None:
    """Make Arrow and the C library return freed memory to the system."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with _glibc() as library:
        library.malloc_trim(0)


@contextlib.contextmanager
def _glibc() -> Any:
    """Yield glibc. With another C library, the block ends at its first call."""
    with contextlib.suppress(OSError, AttributeError):
        yield ctypes.CDLL("libc.so.6")
