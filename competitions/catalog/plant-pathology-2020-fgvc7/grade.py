import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc
from competitions.scoring.reading import Reads

from .columns import CLASSES

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, answers.columns)
    submission, answers = align(submission, answers, on="image_id")
    return mean_columnwise_roc_auc(answers[CLASSES], numbers(submission, CLASSES))
