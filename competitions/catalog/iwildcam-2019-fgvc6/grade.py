import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import integers, numbers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_macro
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Macro-averaged F1."""
    submission, answers = align(submission, answers, on="Id", columns=["Category"])
    if edition == "v2":  # v2 fixes unknown-classes-accepted
        numbers(submission, "Category", low=0, high=22)
    # v2 fixes unknown-classes-accepted
    predicted = (whole_numbers if edition == "v2" else integers)(submission, "Category")
    return f1_macro(answers["Category"], predicted)
