"""Grading in worker processes, so that no submission can end the grading of others or delay it beyond its limits.

`pool` starts `server`, the process that holds the answers, which forks a `worker` for submissions; `scoring` reads and
scores one within `limits`, and `endings` says what each way to end means. `cache` keeps graders open between calls.
"""

from grading.workers.cache import GraderCache
from grading.workers.limits import GradingLimits
from grading.workers.pool import IsolatedGrader, grade_many

__all__ = ["GraderCache", "GradingLimits", "IsolatedGrader", "grade_many"]
