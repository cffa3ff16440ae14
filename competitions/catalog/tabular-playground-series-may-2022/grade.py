import pandas as pd

from grading.cells import probabilities
from grading.checks import align
from grading.metrics.ranking import roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "id", ["target"])
    return roc_auc(answers["target"], probabilities(submission, "target"))
