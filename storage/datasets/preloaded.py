"""What makes a process a good Dask worker; `dask worker ADDRESS --preload storage.datasets.preloaded`.

The workers of a local cluster are forked from a process that has imported this: they start, and stop, in no time.
"""

from __future__ import annotations

import gc
from importlib import import_module

from storage.datasets.memory import keep_blocks

for name in ("distributed", "distributed.nanny", "storage.datasets.materialise", "pandas", "pyarrow.compute", "blake3"):
    import_module(name)
# It stays for good: workers that make a hundred thousand small values need not look through it for garbage each time.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
keep_blocks()
