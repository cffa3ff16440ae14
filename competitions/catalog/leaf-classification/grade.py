import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probability_rows
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.probability import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, answers.columns)
    submission, answers = align(submission, answers, on="id")
    species = [name for name in answers.columns if name != "id"]
    return log_loss(answers[species], probability_rows(submission, species))
