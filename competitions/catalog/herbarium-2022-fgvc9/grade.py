import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import integers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_macro


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Macro-averaged F1."""
    submission, answers = align(submission, answers, on="Id", columns=["Predicted"])
    # v2 fixes fractions-truncated
    predicted = (whole_numbers if edition == "v2" else integers)(submission, "Predicted")
    return f1_macro(answers["Predicted"], predicted)
