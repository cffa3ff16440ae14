"""Grading: medals, reports, statistics, integrity checks, the results page, and worker processes that grade.

Importing this package is cheap; its modules load pandas and scikit-learn when they are imported themselves.
"""

from competitions.scoring.errors import InvalidSubmission

__all__ = ["InvalidSubmission"]
