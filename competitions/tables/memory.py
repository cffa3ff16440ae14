"""How memory is got in processes that read and write tables.

Arrow's default, mimalloc, asks the system for huge pages. Where memory is fragmented, as with a large page cache, the
first 300 MB then take one to two seconds of the processor.
"""

from __future__ import annotations

import os

import pyarrow as pa

from common.heap import retain_freed_memory


def choose() -> None:
    """Let Arrow allocate with jemalloc from now on, if it has it and the user has not chosen another one.

    NumPy's memory is retained where it was freed, for the next of the many arrays of a column's size.
    """
    retain_freed_memory()
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
