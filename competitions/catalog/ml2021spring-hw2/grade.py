import pandas as pd

from grading.cells import labels
from grading.checks import align
from grading.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, "Id", ["ClassId"])
    truth = answers["ClassId"]
    return accuracy(truth, labels(submission, "ClassId", truth, strict=edition == "v2"))
