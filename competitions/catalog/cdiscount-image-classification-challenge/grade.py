import pandas as pd

from grading.cells import labels
from grading.checks import align
from grading.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Share of right categories."""
    submission, answers = align(submission, answers, on="_id", columns=["category_id"])
    truth = answers["category_id"]
    return accuracy(truth, labels(submission, "category_id", truth, strict=edition == "v2"))
