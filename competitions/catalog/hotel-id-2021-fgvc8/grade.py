import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import align
from competitions.scoring.metrics.items import Items, split_items
from competitions.scoring.metrics.ranking import mean_average_precision_at_k
from competitions.scoring.reading import Reads

READS = Reads(answers=("image", "hotel_id"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="image", columns=["hotel_id"])
    separator: str | None = " "
    if edition == "v2":  # pandas reads single ids as floats if a cell is empty (v2 fixes single-ids-with-gap)
        submission, separator = submission.convert_dtypes(), None
    guesses = split_items(as_strings(submission, "hotel_id"), separator)
    truth = Items(as_strings(answers, "hotel_id"), np.ones(len(answers), np.int64))
    return mean_average_precision_at_k(truth, guesses, 5)
