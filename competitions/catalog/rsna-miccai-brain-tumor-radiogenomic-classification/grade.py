import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Area under the ROC curve. Ids are numbers, so leading zeros do not matter."""
    submission, answers = align(submission, answers, on="BraTS21ID", columns=["MGMT_value"])
    return roc_auc(answers["MGMT_value"], probabilities(submission, "MGMT_value"))
