"""What a worker does with memory that it needs no more: keep it for the next block, give it back after a dataset."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)


def keep_blocks() -> None:
    """Have the C library keep what is freed, up to 32 MB.

    Dask has its workers give memory back after every block that is read. The system clears each page that it hands out
    again, which takes longer than reading and hashing what is put there.
    """
    with _glibc() as library:
        library.mallopt(_TRIM_THRESHOLD, 32 << 20)
        library.mallopt(_MMAP_THRESHOLD, 16 << 20)


def give_back() -> None:
    """Have Arrow and the C library return what they keep."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with _glibc() as library:
        library.malloc_trim(0)


@contextlib.contextmanager
def _glibc() -> Any:
    """The C library; the block ends at once where that is another one."""
    with contextlib.suppress(OSError, AttributeError):
        yield ctypes.CDLL("libc.so.6")
