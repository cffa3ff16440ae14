"""How work is judged: reading and checking submissions, metrics, medals, reports.

Importing this package is cheap; its modules load pandas and scikit-learn when they are imported themselves.
"""

from competitions.scoring.errors import InvalidSubmission

__all__ = ["InvalidSubmission"]
