"""Grading in worker processes, so that no submission, however hostile, takes down or holds up the rest."""

from grading.workers.limits import GradingLimits
from grading.workers.pool import IsolatedGrader, grade_many

__all__ = ["GradingLimits", "IsolatedGrader", "grade_many"]
