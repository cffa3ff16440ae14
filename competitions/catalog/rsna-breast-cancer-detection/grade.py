import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.probability import probabilistic_f1
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Probabilistic F1. Predictions are clipped to [0, 1], and in v1 an empty one makes the score 0."""
    submission, answers = align(submission, answers, on="prediction_id", columns=["cancer"])
    lenient = edition == "v1"  # v2 fixes infinite-predictions, missing-scores-zero
    predicted = numbers(submission, "cancer", missing=lenient, infinite=lenient)
    if (predicted < 0).all():
        raise InvalidSubmission("`cancer` is negative in every row; predict likelihoods from 0 to 1.")
    return probabilistic_f1(answers["cancer"], predicted)
