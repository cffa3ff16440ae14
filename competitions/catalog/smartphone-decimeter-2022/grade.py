import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import joined, numbers, require_numeric
from competitions.scoring.checks import align, require_columns, require_rows
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.geo import haversine
from competitions.scoring.reading import Reads

from .columns import EPOCH, POSITION

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_columns(submission, *EPOCH, *POSITION)
    require_rows(submission, len(answers))
    require_numeric(submission, *POSITION)
    # v1 pairs the rows of a trip by position; an empty cell or an infinity makes the score NaN.
    lenient = edition == "v1"  # v2 fixes rows-paired-by-position, nan-score
    if not lenient:
        submission, answers = align(with_epoch(submission), with_epoch(answers), "epoch")
    predicted = numbers(submission, POSITION, missing=lenient, infinite=lenient)
    trip, trips = pd.factorize(answers["tripId"])
    own_trip = trips.get_indexer(pd.Index(submission["tripId"]))
    counts, own_counts = (np.bincount(codes[codes >= 0], minlength=len(trips)) for codes in (trip, own_trip))
    if (counts != own_counts).any():
        first = int(np.argmax(counts != own_counts))
        raise InvalidSubmission(f"Trip {trips[first]} has {own_counts[first]} rows; {counts[first]} are expected.")
    rows, own_rows = (np.argsort(codes, kind="stable")[-counts.sum() :] for codes in (trip, own_trip))
    distances = haversine(*answers[POSITION].to_numpy()[rows].T, *predicted[own_rows].T)
    ascending = distances[np.lexsort([distances, trip[rows]])]
    ends = np.cumsum(counts)
    quantiles = [_quantiles(ascending, ends - counts, counts, share) for share in (0.5, 0.95)]
    return float(np.mean(np.stack(quantiles, axis=-1).mean(axis=-1)))


def _quantiles(
    values: NDArray[np.float64], starts: NDArray[np.intp], sizes: NDArray[np.intp], share: float
) -> NDArray[np.float64]:
    """`np.quantile` of each trip, whose ascending values have this start and size; NaN if one of them is NaN."""
    position = (sizes - 1) * share
    lower_index = np.floor(position).astype(np.intp)
    low, high = values[starts + lower_index], values[starts + np.minimum(lower_index + 1, sizes - 1)]
    part = position - lower_index
    # From the nearer of the two, as NumPy interpolates.
    between = np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))
    return np.where(np.isnan(values[starts + sizes - 1]), np.nan, between)


def with_epoch(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.assign(UnixTimeMillis=numbers(rows, "UnixTimeMillis").astype("int64"))
    return rows.assign(epoch=joined(rows, "tripId", "UnixTimeMillis"))
