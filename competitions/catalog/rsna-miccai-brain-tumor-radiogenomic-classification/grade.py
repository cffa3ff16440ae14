import pandas as pd

from grading.cells import probabilities
from grading.checks import align
from grading.metrics.ranking import roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Area under the ROC curve. Ids are numbers: leading zeros do not matter."""
    submission, answers = align(submission, answers, on="BraTS21ID", columns=["MGMT_value"])
    return roc_auc(answers["MGMT_value"], probabilities(submission, "MGMT_value"))
