import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, require_numeric
from competitions.scoring.checks import align, require_columns, require_rows
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.geo import haversine

from .columns import EPOCH, POSITION


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_columns(submission, *EPOCH, *POSITION)
    require_rows(submission, len(answers))
    require_numeric(submission, *POSITION)
    # v1 pairs the rows of a trip by position; an empty cell or an infinity makes the score NaN.
    lenient = edition == "v1"  # v2 fixes rows-paired-by-position, nan-score
    if not lenient:
        submission, answers = align(with_epoch(submission), with_epoch(answers), "epoch")
    predicted = numbers(submission, POSITION, missing=lenient, infinite=lenient)
    places = submission.groupby("tripId").indices
    scores = []
    for trip, rows in answers.groupby("tripId", sort=False):
        guesses = predicted[places.get(trip, [])]
        if len(guesses) != len(rows):
            raise InvalidSubmission(f"Trip {trip} has {len(guesses)} rows; {len(rows)} are expected.")
        distances = haversine(*rows[POSITION].to_numpy().T, *guesses.T)
        scores.append(np.quantile(distances, [0.5, 0.95]).mean())
    return float(np.mean(scores))


def with_epoch(rows: pd.DataFrame) -> pd.DataFrame:
    times = numbers(rows, "UnixTimeMillis").astype("int64").astype(str)
    return rows.assign(epoch=rows["tripId"].astype(str) + " " + times)
