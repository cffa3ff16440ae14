"""Performance profiles and interquartile means: how human percentiles of runs are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grading.statistics.resampling import DRAWS, Floats, have_runs, run_weights, table_of
from grading.statistics.seeds import Interval

PERCENTILES = tuple(range(0, 101, 5))
"""Human percentiles at which a profile is drawn."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Profile:
    """Shares of runs above each of the values `at`, with the ends of their pointwise 95 % intervals."""

    at: list[float]
    share: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Distribution:
    """The interquartile mean of the runs with its 95 % interval, and their performance profile."""

    iqm: float
    interval: Interval
    profile: Profile
    runs: int
    competitions: int


def distribution(
    values: ArrayLike, at: Sequence[float] = PERCENTILES, draws: int = DRAWS, seed: int = 0
) -> Distribution:
    """The distribution of the values of runs, in which every competition has the same weight.

    The interquartile mean (IQM) is the mean of the middle half, and a performance profile the share of runs above each
    value; both from Agarwal et al. 2021 (Deep reinforcement learning at the edge of the statistical precipice, arXiv
    2108.13264). A run at the border of the middle half counts with the part that is inside. Intervals are percentile
    bootstraps that resample the runs of each competition (stratified): they describe other runs of these competitions.
    They are NaN if fewer than nine in ten of the competitions have two graded runs.

    Args:
        values: a row per competition and a column per seed, NaN where a run is not graded. A run without a score has
            the human percentile 0.
        at: the values at which the profile is drawn.
        draws: number of resamples.
        seed: of the generator.
    """
    table = table_of(values)
    table = table[~np.isnan(table).all(axis=1)]
    graded = ~np.isnan(table)
    weights = graded / np.maximum(graded.sum(axis=1, keepdims=True), 1)
    order = np.argsort(table[graded], kind="stable")
    ranked = table[graded][order]
    if not len(ranked):
        nothing = [math.nan] * len(at)
        return Distribution(math.nan, Interval(math.nan, math.nan), Profile(list(at), *[nothing] * 3), 0, 0)

    def cumulated(weights: Floats) -> Floats:
        """Shares of the runs up to each, in ascending order; shape (draws, runs + 1)."""
        sums = np.cumsum(weights.reshape(-1, *table.shape)[:, graded][:, order], axis=1) / len(table)
        return np.pad(sums, ((0, 0), (1, 0)))

    below = np.searchsorted(ranked, np.asarray(at, dtype=float) + _ROUNDING, side="right")
    whole = cumulated(weights)
    ends = np.full((2, 1 + len(at)), math.nan)
    if have_runs(table, 2):
        resampled = cumulated(run_weights(table, draws, np.random.default_rng(seed)))
        figures = np.column_stack([_middle(resampled, ranked), _above(resampled, below)])
        ends = np.quantile(figures, [0.025, 0.975], axis=0)
    low, high = ends[:, 1:].tolist()
    profile = Profile(list(at), _above(whole, below)[0].tolist(), low, high)
    interval = Interval(float(ends[0, 0]), float(ends[1, 0]))
    return Distribution(float(_middle(whole, ranked)[0]), interval, profile, len(ranked), len(table))


def _above(cumulated: Floats, below: NDArray[np.intp]) -> Floats:
    """The share of runs above each value, of which `below` runs are not; without the rounding of the sums."""
    found: Floats = np.round(1 - cumulated[:, below], 12)
    return np.abs(found)


def _middle(cumulated: Floats, ranked: Floats) -> Floats:
    """The mean of the values between the quartiles, for each row of cumulated weights."""
    inside = np.diff(np.clip(cumulated, 0.25, 0.75), axis=1)
    found: Floats = inside @ ranked / 0.5
    return found
