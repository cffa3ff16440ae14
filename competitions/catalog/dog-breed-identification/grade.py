import pandas as pd

from grading.cells import probability_rows
from grading.checks import align
from grading.metrics.probability import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    breeds = [name for name in answers.columns if name != "id"]
    submission, answers = align(submission, answers, on="id", columns=breeds)
    return log_loss(answers[breeds], probability_rows(submission, breeds))
