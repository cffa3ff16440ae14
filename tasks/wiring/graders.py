"""The graders of this process."""

from __future__ import annotations

import atexit
from functools import cache

from grading.workers import GraderCache


@cache  # global, because Prefect hands tasks only small values: tasks of one process share graders through this
def process_graders() -> GraderCache:
    """Graders that tasks of this process share; closed when it ends."""
    graders = GraderCache()
    atexit.register(graders.close)
    return graders
