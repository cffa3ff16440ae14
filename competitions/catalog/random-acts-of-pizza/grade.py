import pandas as pd

from grading.cells import probabilities
from grading.checks import align
from grading.metrics.ranking import roc_auc

TARGET = "requester_received_pizza"


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "request_id", [TARGET])
    return roc_auc(answers[TARGET], probabilities(submission, TARGET))
