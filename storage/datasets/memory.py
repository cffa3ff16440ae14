"""Memory of workers. Freed blocks are retained for the next file, and released to the system after a dataset."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

from common.heap import release_freed_memory


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
    release_freed_memory()
