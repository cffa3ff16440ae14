"""Memory that a worker no longer needs, given back to the system between two datasets."""

from __future__ import annotations

import contextlib
import ctypes
import sys


def give_back() -> None:
    """Have Arrow and the C library return what they keep for later."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL("libc.so.6").malloc_trim(0)
