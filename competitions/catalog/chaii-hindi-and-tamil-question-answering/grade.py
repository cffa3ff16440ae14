import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.metrics.text import word_jaccard
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = align(submission, answers, on="id", columns=["PredictionString"])
    predicted, true = (texts(table, "PredictionString", missing="") for table in tables)
    both_empty = 1.0 if edition == "v2" else 0.0  # v2 fixes both-empty
    return float(np.mean(np.nan_to_num(word_jaccard(true, predicted), nan=both_empty)))
