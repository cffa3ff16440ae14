import pandas as pd

from grading.cells import numbers
from grading.checks import align
from grading.metrics.regression import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=["progression"])
    return rmse(answers["progression"], numbers(submission, "progression"))
