import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Accuracy of the categories."""
    submission, answers = align(submission, answers, on="_id", columns=["category_id"])
    truth = answers["category_id"]
    # v2 fixes text-scores-zero
    return accuracy(truth, labels(submission, "category_id", truth, strict=edition == "v2"))
