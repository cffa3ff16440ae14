import pandas as pd

from grading.cells import texts
from grading.checks import align
from grading.metrics.classification import f1_micro_sets


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="image", columns=["labels"])
    predicted = texts(submission, "labels", missing="")
    return f1_micro_sets(answers["labels"], predicted, count_unknown=edition == "v2")
