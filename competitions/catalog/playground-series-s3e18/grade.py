import pandas as pd

from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc

TARGETS = ["EC1", "EC2"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "id", TARGETS)
    return mean_columnwise_roc_auc(answers[TARGETS], numbers(submission, TARGETS))
