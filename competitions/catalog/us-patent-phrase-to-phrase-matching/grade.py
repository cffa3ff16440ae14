import math

import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, require_numeric
from competitions.scoring.checks import align
from competitions.scoring.metrics.correlation import pearson
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "score"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "id", ["score"])
    require_numeric(submission, "score")
    # v2 fixes nan-scores, sample-without-score
    if edition == "v1":  # NaN for constant predictions, an empty cell or an infinity
        return pearson(answers["score"], numbers(submission, "score", missing=True, infinite=True))
    correlation = pearson(answers["score"], numbers(submission, "score"))
    return 0.0 if math.isnan(correlation) else correlation
