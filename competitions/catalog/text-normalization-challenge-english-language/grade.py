import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=["after"])
    return accuracy(as_text(answers, "after"), as_text(submission, "after"))
