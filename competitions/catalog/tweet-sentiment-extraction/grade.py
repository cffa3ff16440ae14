import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.text import word_jaccard
from competitions.scoring.reading import Reads

READS = Reads(answers=("textID", "selected_text"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = align(submission, answers, on="textID", columns=["selected_text"])
    predicted, true = (as_text(table.fillna({"selected_text": ""}), "selected_text") for table in tables)
    scores = word_jaccard(true, predicted)
    if edition == "v2":  # v2 fixes both-empty
        scores = np.nan_to_num(scores, nan=1.0)
    if np.isnan(scores).any():
        raise InvalidSubmission("`selected_text` has an empty cell that cannot be scored; put a word in every row.")
    return float(np.mean(scores))
