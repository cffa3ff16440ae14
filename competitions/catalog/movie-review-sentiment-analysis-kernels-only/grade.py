import pandas as pd

from grading.cells import labels
from grading.checks import align
from grading.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="PhraseId", columns=["Sentiment"])
    true = answers["Sentiment"]
    return accuracy(true, labels(submission, "Sentiment", true, strict=edition == "v2"))
