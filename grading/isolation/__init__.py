"""Grading in worker processes, so that no submission, however hostile, takes down or holds up the rest."""

from grading.isolation.limits import GradingLimits
from grading.isolation.pool import IsolatedGrader, grade_many

__all__ = ["GradingLimits", "IsolatedGrader", "grade_many"]
