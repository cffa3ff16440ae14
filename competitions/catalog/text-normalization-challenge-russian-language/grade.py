import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import match
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "after"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = match(submission, answers, on="id", columns=["after"])
    return accuracy(as_strings(answers, "after"), as_strings(submission, "after"))
