import pandas as pd

from grading.cells import probabilities
from grading.checks import align
from grading.metrics.probability import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=["label"])
    return log_loss(answers["label"], probabilities(submission, "label"))
