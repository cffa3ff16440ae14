import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_mean_sets, f1_micro_sets


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = align(submission, answers, on="Id", columns=["Tags"])
    predicted, true = (texts(table, "Tags", missing="") for table in tables)
    if edition == "v2":
        return f1_mean_sets(true, predicted)
    return f1_micro_sets(true, predicted)
