import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import match
from competitions.scoring.metrics.regression import rmse
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Root mean squared error over all pixels."""
    submission, answers = match(submission, answers, on="id", columns=["value"])
    return rmse(answers["value"], numbers(submission, "value"))
