import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

READS = Reads(answers=("PassengerId", "Transported"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="PassengerId", columns=["Transported"])
    truth = answers["Transported"]
    # v2 fixes text-scores-zero
    return accuracy(truth, labels(submission, "Transported", truth, strict=edition == "v2"))
