import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.bias import bias_auc
from competitions.scoring.reading import Reads

IDENTITIES = [
    "male", "female", "homosexual_gay_or_lesbian", "christian", "jewish", "muslim", "black", "white",
    "psychiatric_or_mental_illness",
]  # fmt: skip
READS = Reads(answers=("id", "toxicity", *IDENTITIES))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    if {"prediction", "toxicity"} <= set(submission.columns):
        raise InvalidSubmission("The submission must not have both columns `prediction` and `toxicity`.")
    column = "toxicity" if "toxicity" in submission.columns else "prediction"
    submission, answers = align(submission, answers, on="id", columns=[column])
    scores: NDArray[np.float64 | np.bool_]
    if edition == "v2":  # v2 fixes thresholded-predictions, empty-predictions
        scores = numbers(submission, column)
    # pandas also reads numbers as text if one of them exceeds 64 bits.
    elif submission[column].dtype == object and any(isinstance(cell, str) for cell in submission[column]):
        raise InvalidSubmission(f"`{column}` must be a number in every row.")
    else:  # the threshold loses the ranking of the predictions, and an empty cell counts as not toxic
        scores = numbers(submission, column, missing=True, infinite=True) >= 0.5
    return bias_auc(answers["toxicity"] >= 0.5, scores, answers[IDENTITIES] >= 0.5)
