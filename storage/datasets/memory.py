"""Memory of processes that prepare. Freed blocks are retained for the next file.

Workers, and processes that prepare for a store, release them after a dataset.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

from common.heap import release_freed_memory

_COLLECTIONS = (500_000, 20, 20)
"""New objects, and collections of younger ones, that lead to a collection. Names and sizes of files are no cycles."""


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Have garbage collections in the block come seldom, and look at new objects only: modules are many, and stay.

    With Python's thresholds, they go through the records of a large JSON document and the names of many files again and
    again while these come into being.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.freeze()  # what has come counts as old at once: with fewer objects allowed, it would be gone through here
        gc.set_threshold(*before)
        gc.unfreeze()


def release_memory() -> None:
    """Make Arrow and the C library return freed memory to the system."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    release_freed_memory()
