import math

import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, align_repeated
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.regression import mae

TARGET = "time_to_eruption"


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    # v1 counts a segment as often as it occurs (v2 fixes repeated-ids)
    match = align if edition == "v2" else align_repeated
    submission, answers = match(submission, answers, "segment_id", [TARGET])
    error = mae(answers[TARGET], numbers(submission, TARGET))
    if not math.isfinite(error):
        raise InvalidSubmission(f"The numbers in `{TARGET}` are too large.")
    return error if edition == "v2" else round(error)  # v2 fixes rounded-score
