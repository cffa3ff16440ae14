import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, require_numeric
from competitions.scoring.checks import locate, require_exact_columns
from competitions.scoring.metrics.geo import angular_distance

from .columns import ANGLES


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, ["event_id", *ANGLES])
    require_numeric(submission, *ANGLES, booleans=False)
    submission, answers, rows = locate(submission, answers, on="event_id")
    # Column by column, and in the order in which they were read: 13 million rows would be copied otherwise.
    predicted, truth = ([numbers(table, name) for name in ANGLES] for table in (submission, answers))
    return float(angular_distance(*truth, *predicted, rows=rows).mean())
