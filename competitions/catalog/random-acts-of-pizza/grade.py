import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import roc_auc
from competitions.scoring.reading import Reads

from .columns import TARGET

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "request_id", [TARGET])
    return roc_auc(answers[TARGET], probabilities(submission, TARGET))
