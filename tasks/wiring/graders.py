"""The graders of this process."""

from __future__ import annotations

import atexit
import threading
from functools import cache

from grading.workers import GraderCache

# Without the lock, threads that make the first call at the same time would get different caches.
_lock = threading.Lock()


def process_graders() -> GraderCache:
    """The graders that the tasks of this process share. They are closed when the process ends."""
    with _lock:
        return _graders()


# Global, because Prefect passes only small values to tasks: this is how the tasks of a process share graders.
@cache
def _graders() -> GraderCache:
    graders = GraderCache()
    atexit.register(graders.close)
    return graders
