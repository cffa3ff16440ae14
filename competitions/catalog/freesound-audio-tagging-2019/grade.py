import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.ranking import label_ranking_average_precision
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require finite numbers in all rows, also of clips without a label: which these are would tell the truth."""
    if edition == "v1":  # v2 fixes class-order
        require_exact_columns(submission, answers.columns, ordered=True)
    classes = [name for name in answers.columns if name != "fname"]
    submission, _ = align(submission, answers, on="fname", columns=classes)
    numbers(submission, classes)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Label-weighted label-ranking average precision. Clips without a label do not count."""
    if edition == "v1":  # v2 fixes class-order
        require_exact_columns(submission, answers.columns, ordered=True)
    classes = [name for name in answers.columns if name != "fname"]
    submission, answers = align(submission, answers, on="fname", columns=classes)
    scores = numbers(submission, classes, missing=True, infinite=True)
    if not np.isfinite(scores[answers[classes].any(axis=1)]).all():
        raise InvalidSubmission("Every class needs a finite number in every row.")
    return label_ranking_average_precision(answers[classes], scores)
