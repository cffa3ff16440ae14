"""Resampling of runs within competitions, and of competitions, as weights of the values that there are.

Of n values, n - 1 are drawn with replacement, so that the variance of a mean over resamples is s^2 / n with s^2 divided
by n - 1: unbiased also for the two or three runs of a competition, for which the usual n of n gives a half or two
thirds of it (Rao and Wu 1988, Resampling inference with complex survey data, JASA 83(401)).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grading.statistics.intervals import COVERED

Floats = NDArray[np.float64]
Vary = Literal["runs", "competitions"]
"""What is resampled: "runs" of the same competitions, or "competitions" with their runs."""

DRAWS = 2_000


def table_of(values: ArrayLike) -> Floats:
    """A table with a row per competition and a column per seed, NaN where a run is not graded.

    Raises ValueError for another shape, and for infinite values.
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError(f"need a table of competitions x seeds without infinite values, got the shape {table.shape}")
    return table


def means_of(table: Floats) -> Floats:
    """The mean of each competition's graded runs; NaN without one."""
    runs = (~np.isnan(table)).sum(axis=1)
    found: Floats = np.where(runs > 0, np.nansum(table, axis=1) / np.maximum(runs, 1), np.nan)
    return found


def have_runs(table: Floats, k: int) -> bool:
    """Whether nine in ten of the competitions with a graded run have `k` of them."""
    runs = (~np.isnan(table)).sum(axis=1)
    runs = runs[runs > 0]
    return len(runs) > 0 and float((runs >= k).mean()) >= COVERED


def run_weights(table: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Weights of runs when those of each competition are resampled; shape (draws, competitions, seeds).

    They add up to 1 in each competition with a graded run. A single run has the weight 1 in all draws.
    """
    graded = ~np.isnan(table)
    competitions, seeds = table.shape
    runs = graded.sum(axis=1)
    drawn = np.maximum(runs - 1, np.minimum(runs, 1))
    most = int(drawn.max(initial=0))
    columns = np.argsort(~graded, axis=1, kind="stable")  # the graded seeds of each competition first
    place = (generator.random((draws, competitions, most)) * runs[:, None]).astype(int)
    chosen = columns[np.arange(competitions)[:, None], place] if most else place
    cells = (np.arange(draws)[:, None, None] * competitions + np.arange(competitions)[:, None]) * seeds + chosen
    used = np.broadcast_to(np.arange(most) < drawn[:, None], cells.shape)
    counts = np.bincount(cells[used], minlength=draws * competitions * seeds)
    return counts.reshape(draws, competitions, seeds) / np.maximum(drawn, 1)[:, None]


def competition_weights(competitions: int, draws: int, generator: np.random.Generator) -> Floats:
    """Weights of competitions when they are resampled; shape (draws, competitions), each draw adds up to 1."""
    drawn = max(competitions - 1, 1)
    return generator.multinomial(drawn, np.full(competitions, 1 / competitions), draws) / drawn
