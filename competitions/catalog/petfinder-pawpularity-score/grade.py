import pandas as pd

from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.regression import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="Id", columns=["Pawpularity"])
    return rmse(answers["Pawpularity"], numbers(submission, "Pawpularity", low=1, high=100))
