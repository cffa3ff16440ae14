import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.weighted_roc import weighted_roc_auc
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Area under the ROC curve, in which true positive rates up to 0.4 count twice."""
    submission, answers = align(submission, answers, on="Id", columns=["Label"])
    return weighted_roc_auc(answers["Label"], numbers(submission, "Label"))
