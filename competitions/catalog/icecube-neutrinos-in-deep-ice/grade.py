import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, require_numeric
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.geo import angular_distance

from .columns import ANGLES


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, ["event_id", *ANGLES])
    require_numeric(submission, *ANGLES, booleans=False)
    submission, answers = align(submission, answers, on="event_id")
    predicted, truth = numbers(submission, ANGLES), numbers(answers, ANGLES)
    return float(angular_distance(*truth.T, *predicted.T).mean())
