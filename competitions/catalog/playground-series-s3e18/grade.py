import pandas as pd

from grading.cells import numbers
from grading.checks import align
from grading.metrics.ranking import mean_columnwise_roc_auc

TARGETS = ["EC1", "EC2"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "id", TARGETS)
    return mean_columnwise_roc_auc(answers[TARGETS], numbers(submission, TARGETS))
