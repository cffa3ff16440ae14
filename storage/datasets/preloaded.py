"""A Dask worker of ours: `dask worker --preload storage.datasets.preloaded`, and the fork server of a local cluster.

It imports what every chunk needs, and sets how the process manages its memory.
"""

from __future__ import annotations

import gc

from common.heap import retain_freed_memory
from common.starting import COLLECTIONS
from storage.datasets.workers import prepare_process

prepare_process()
gc.collect()
gc.freeze()  # what was imported lives as long as the process
gc.set_threshold(*COLLECTIONS)
retain_freed_memory()
