import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc
from competitions.scoring.reading import Reads

from .columns import findings

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    graded = findings(answers, edition)
    submission, answers = align(submission, answers, on="StudyInstanceUID", columns=graded)
    return mean_columnwise_roc_auc(answers[graded], probabilities(submission, graded))
