from typing import Any

import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_columns, require_rows
from competitions.scoring.metrics.regression import rmsle
from competitions.scoring.reading import Reads

from .columns import TARGETS

READS = Reads(answers=("id", *TARGETS))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_columns(submission, *TARGETS)
    require_rows(submission, len(answers))
    if edition == "v2":  # v2 fixes ids-ignored
        submission, answers = align(submission, answers, "id")
    return sum(rmsle(answers[name], predicted(submission, name)) for name in TARGETS) / len(TARGETS)


def predicted(submission: pd.DataFrame, name: str) -> NDArray[Any]:
    values = numbers(submission, name, low=0)
    # A column of booleans keeps its type, because the published grader computes its logarithm in half precision.
    return values.astype(bool) if submission[name].dtype == bool else values
