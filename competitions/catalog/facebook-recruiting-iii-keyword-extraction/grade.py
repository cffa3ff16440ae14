import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import strings
from competitions.scoring.checks import match
from competitions.scoring.metrics.classification import f1_mean_sets, f1_micro_sets
from competitions.scoring.reading import Reads

# The sample submission has the questions, too: a gigabyte of text. In v2, no other column is allowed.
READS = Reads(answers=("Id", "Tags"), texts="arrow", columns={"v1": ("Id", "Tags")})


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = match(submission, answers, on="Id", columns=["Tags"])
    predicted, true = (strings(table, "Tags", missing="") for table in tables)
    if edition == "v2":  # v2 fixes unknown-tags-are-free, pooled-f1
        return f1_mean_sets(true, predicted)
    return f1_micro_sets(true, predicted)
