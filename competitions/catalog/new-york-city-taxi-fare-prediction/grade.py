import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_columns, require_rows, sort_by
from competitions.scoring.metrics.regression import rmse
from competitions.scoring.reading import Reads

READS = Reads(answers=("key", "fare_amount"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_columns(submission, "fare_amount", "key")
    require_rows(submission, len(answers))
    if edition == "v2":  # v2 fixes keys-not-compared
        submission, answers = align(submission, answers, "key")
    # v1 pairs rows by the rank of their keys and does not compare the keys.
    fares = numbers(sort_by(submission, "key"), "fare_amount")
    return rmse(sort_by(answers, "key")["fare_amount"], fares)
