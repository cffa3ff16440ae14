import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.regression import rmse
from competitions.scoring.reading import Reads

from .scale import HIGHEST, LOWEST

READS = Reads(answers=("Id", "Pawpularity"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="Id", columns=["Pawpularity"])
    return rmse(answers["Pawpularity"], numbers(submission, "Pawpularity", low=LOWEST, high=HIGHEST))
