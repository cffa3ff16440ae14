import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.regression import mae
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "u_out", "pressure"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "id", ["pressure"])
    if edition == "v2":  # v2 fixes unscored-rows-unchecked
        numbers(submission, "pressure")  # in v1 only scored rows must hold a number
    inhaling = answers["u_out"] == 0
    return mae(answers.loc[inhaling, "pressure"], numbers(submission[inhaling], "pressure"))
