"""The graders of this process."""

from __future__ import annotations

import atexit
import threading
from functools import cache
from pathlib import Path

from common.settings import get_settings
from competitions.competition import Competition
from competitions.editions import Edition
from grading.workers import GraderCache, kept_answers
from storage.dataset import Dataset
from storage.upkeep.space import PARSED_ANSWERS

# Without the lock, threads that make the first call at the same time would get different caches.
_lock = threading.Lock()


def process_graders() -> GraderCache:
    """The graders that the tasks of this process share. They are closed when the process ends."""
    with _lock:
        return _graders()


# Global, because Prefect passes only small values to tasks: this is how the tasks of a process share graders.
@cache
def _graders() -> GraderCache:
    graders = GraderCache(answers=get_settings().scratch / PARSED_ANSWERS)
    atexit.register(graders.close)
    return graders


def parsed_answers(competition: Competition, dataset: Dataset, edition: Edition) -> Path | None:
    """The file on the scratch disk that keeps the parsed answers of a dataset, if it has a key."""
    folder, code = get_settings().scratch / PARSED_ANSWERS, competition.grader_fingerprint(edition)
    return kept_answers(folder, competition, dataset.key or "", code)
