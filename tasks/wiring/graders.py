"""The graders of this process."""

from __future__ import annotations

import atexit
import threading
from functools import cache

from grading.workers import GraderCache

_lock = threading.Lock()  # threads that make the first call at the same time would get different caches


def process_graders() -> GraderCache:
    """Graders that tasks of this process share; closed when it ends."""
    with _lock:
        return _graders()


@cache  # global, because Prefect hands tasks only small values: tasks of one process share graders through this
def _graders() -> GraderCache:
    graders = GraderCache()
    atexit.register(graders.close)
    return graders
