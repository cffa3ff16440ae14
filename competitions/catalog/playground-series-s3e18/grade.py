import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc
from competitions.scoring.reading import Reads

from .columns import SUBMITTED

READS = Reads(answers=("id", *SUBMITTED))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "id", SUBMITTED)
    return mean_columnwise_roc_auc(answers[SUBMITTED], numbers(submission, SUBMITTED))
