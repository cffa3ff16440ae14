"""The score of a submission. What cannot be graded raises `InvalidSubmission`, as the functions used here do.

grading/checks.py checks columns, rows and ids, grading/cells.py what the cells hold; grading/metrics has the metrics.
"""

import pandas as pd

from grading.cells import numbers
from grading.checks import align
from grading.metrics.regression import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=["area"])
    return rmse(answers["area"], numbers(submission, "area"))
