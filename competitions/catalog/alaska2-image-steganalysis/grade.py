import pandas as pd

from grading.cells import numbers
from grading.checks import align
from grading.metrics.ranking import weighted_roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Area under the ROC curve, true positive rates up to 0.4 counted twice."""
    submission, answers = align(submission, answers, on="Id", columns=["Label"])
    return weighted_roc_auc(answers["Label"], numbers(submission, "Label"))
