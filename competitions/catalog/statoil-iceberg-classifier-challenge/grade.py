import pandas as pd

from grading.cells import probabilities
from grading.checks import align
from grading.metrics.probability import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "id", ["is_iceberg"])
    return log_loss(answers["is_iceberg"], probabilities(submission, "is_iceberg"))
