import pandas as pd

from competitions.scoring.cells import numbers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import quadratic_weighted_kappa


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="essay_id", columns=["score"])
    truth, scores = answers["score"], whole_numbers(submission, "score")
    if edition == "v2":
        numbers(submission, "score", low=1, high=6)
        return quadratic_weighted_kappa(truth, scores, classes=range(1, 7))
    return quadratic_weighted_kappa(truth, scores)
