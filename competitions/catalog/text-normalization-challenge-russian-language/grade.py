import pandas as pd

from grading.cells import as_text
from grading.checks import align
from grading.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=["after"])
    return accuracy(as_text(answers, "after"), as_text(submission, "after"))
