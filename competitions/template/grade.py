"""Score a submission. A submission that cannot be graded raises `InvalidSubmission`, as the functions below do.

In `competitions.scoring`, `checks` checks columns, rows and ids, `cells` checks and reads cells, and `metrics` contains
the metrics.
"""

import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.regression import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=["area"])
    return rmse(answers["area"], numbers(submission, "area"))
