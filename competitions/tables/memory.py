"""How Arrow gets memory in processes that read and write tables.

Arrow's default, mimalloc, asks the system for huge pages. Where memory is fragmented, as with a large page cache, the
first 300 MB then take one to two seconds of the processor.
"""

from __future__ import annotations

import os

import pyarrow as pa


def choose() -> None:
    """Let Arrow allocate with jemalloc from now on, if it has it and the user has not chosen another one."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
