import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "Id", ["ClassId"])
    truth = answers["ClassId"]
    return accuracy(truth, labels(submission, "ClassId", truth, strict=edition == "v2"))  # v2 fixes text-scores-zero
