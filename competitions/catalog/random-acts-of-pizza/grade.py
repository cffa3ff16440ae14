import pandas as pd

from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import roc_auc

TARGET = "requester_received_pizza"


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "request_id", [TARGET])
    return roc_auc(answers[TARGET], probabilities(submission, TARGET))
