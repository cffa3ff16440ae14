"""What is imported once, by the process that Dask workers are forked from: they start, and stop, in no time."""

from __future__ import annotations

import gc
import logging
from importlib import import_module

for name in ("distributed", "distributed.nanny", "storage.materialise", "pandas", "pyarrow.compute", "blake3"):
    import_module(name)
# It stays for good: workers that make a hundred thousand small values need not look through it for garbage each time.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a task's error reaches whoever gave it
