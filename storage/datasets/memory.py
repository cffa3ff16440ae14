"""Memory of processes that prepare: it is returned to the system after a dataset."""

from __future__ import annotations

import sys

from common.heap import release_freed_memory


def release_memory() -> None:
    """Make Arrow and the C library return freed memory to the system."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    release_freed_memory()
