"""Imports and tuning of a Dask worker: `dask worker ADDRESS --preload storage.datasets.preloaded`.

The workers of a local cluster are forked from a process that has imported this module, so that they start quickly.
"""

from __future__ import annotations

import gc
from importlib import import_module

from storage.datasets.memory import retain_freed_memory

for name in (
    "distributed",
    "distributed.nanny",
    "storage.datasets.materialise",
    "pandas",
    "pyarrow.compute",
    "blake3",
    "pydantic_settings",  # a worker's `set_up` may read settings
):
    import_module(name)
# These objects live as long as the process, so exclude them from garbage collection.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
retain_freed_memory()
