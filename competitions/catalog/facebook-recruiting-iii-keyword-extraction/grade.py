import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_micro_sets


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = align(submission, answers, on="Id", columns=["Tags"])
    predicted, true = (texts(table, "Tags", missing="") for table in tables)
    if edition == "v2":
        pairs = [(set(tags.split()), set(guess.split())) for tags, guess in zip(true, predicted, strict=True)]
        return float(np.mean([2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0 for a, b in pairs]))
    return f1_micro_sets(true, predicted)
