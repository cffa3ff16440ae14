import pandas as pd

from grading.cells import labels
from grading.checks import align
from grading.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Share of right categories."""
    submission, answers = align(submission, answers, on="Id", columns=["Category"])
    truth = answers["Category"]
    return accuracy(truth, labels(submission, "Category", truth, strict=edition == "v2"))
