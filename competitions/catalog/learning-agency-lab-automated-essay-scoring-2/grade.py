import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import quadratic_weighted_kappa
from competitions.scoring.reading import Reads

from .scale import SCORES

READS = Reads(answers=("essay_id", "score"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="essay_id", columns=["score"])
    truth, scores = answers["score"], whole_numbers(submission, "score")
    if edition == "v2":  # v2 fixes weights-by-position
        numbers(submission, "score", low=min(SCORES), high=max(SCORES))
        return quadratic_weighted_kappa(truth, scores, classes=SCORES)
    return quadratic_weighted_kappa(truth, scores)
