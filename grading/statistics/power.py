"""How many competitions and seeds detect a difference between two agents, from variances of earlier results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from grading.statistics.differences import LEVEL, Question
from grading.statistics.resampling import Floats, means_of, table_of

CORRELATION = 0.5
"""Correlation by competition of two agents' true rates, where the results of one agent do not tell it."""


@dataclass(frozen=True)
class Variances:
    """What makes the difference of two agents uncertain.

    `within` is the variance of runs of one agent in a competition, mean over competitions. `between` is the variance
    over competitions of the true difference between two agents; NaN with fewer than two competitions. `measured` is
    False if it was derived from one agent and `CORRELATION`.
    """

    within: float
    between: float
    measured: bool
    competitions: int


def variances(tables: Sequence[ArrayLike]) -> Variances:
    """The variances in results, each table having a row per competition and a column per seed, NaN if not graded.

    The rows of all tables are the same competitions. The variance of the mean of the runs of a competition is taken off
    the variance between competitions. With several agents, `between` is the mean of all pairs; with one, two such
    agents are supposed to correlate as `CORRELATION` says. `within` is NaN without two runs of any competition.
    """
    values = [table_of(table) for table in tables]
    within = [_within(table) for table in values]
    known = [each[~np.isnan(each)] for each in within]
    mean_within = float(np.concatenate(known).mean()) if sum(map(len, known)) else math.nan
    noise = [_noise(table, each, mean_within) for table, each in zip(values, within, strict=True)]
    means = [means_of(table) for table in values]
    if len(values) == 1:
        between = 2 * (1 - CORRELATION) * _true_variance(means[0], noise[0])
    else:
        pairs = itertools.combinations(range(len(values)), 2)
        found = [_true_variance(means[a] - means[b], noise[a] + noise[b]) for a, b in pairs]
        between = float(np.nanmean(found)) if not all(map(math.isnan, found)) else math.nan
    count = int(sum(~np.isnan(table).all() for table in np.concatenate(values, axis=1)))
    return Variances(mean_within, max(0.0, between) if not math.isnan(between) else between, len(values) > 1, count)


def standard_error(found: Variances, competitions: int, seeds: int, question: Question) -> float:
    """The standard error of the mean paired difference; Miller 2024 (Adding error bars to evals, arXiv 2411.00640).

    sqrt(2 within / (C n)) on these C competitions with n seeds of each agent, and sqrt((between + 2 within / n) / C) on
    others like these.
    """
    between = 0.0 if question == "these" else found.between
    return math.sqrt((between + 2 * found.within / seeds) / competitions)


def detectable(error: float, power: float) -> float:
    """The smallest true difference that a two-sided test at 5 % finds with this power.

    (z(0.975) + z(power)) x error: Bloom 1995, with the normal distribution.
    """
    return (_quantile(1 - LEVEL / 2) + _quantile(power)) * error


def power_of(difference: float, error: float) -> float:
    """The probability that a two-sided test at 5 % finds this true difference.

    Without any noise 1, and 0.05, the level of the test, for a difference of 0.
    """
    from scipy.special import ndtr

    if error == 0:
        return 1.0 if difference else LEVEL
    shift, limit = abs(difference) / error, _quantile(1 - LEVEL / 2)
    return float(ndtr(shift - limit) + ndtr(-shift - limit))


def competitions_needed(found: Variances, difference: float, seeds: int, power: float) -> float:
    """How many competitions like these detect this difference; NaN if a variance is unknown."""
    return _whole((detectable(standard_error(found, 1, seeds, "like_these"), power) / difference) ** 2)


def seeds_needed(found: Variances, difference: float, competitions: int, power: float) -> float:
    """How many seeds detect this difference on so many given competitions; NaN if a variance is unknown."""
    return _whole((detectable(standard_error(found, competitions, 1, "these"), power) / difference) ** 2)


def _whole(needed: float) -> float:
    return math.ceil(needed) if math.isfinite(needed) else math.nan


def _quantile(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))


def _within(table: Floats) -> Floats:
    """The variance of each competition's runs, with n - 1 in its denominator; NaN with fewer than two."""
    runs = (~np.isnan(table)).sum(axis=1)
    squares = np.nansum((table - means_of(table)[:, None]) ** 2, axis=1)
    found: Floats = np.where(runs > 1, squares / np.maximum(runs - 1, 1), np.nan)
    return found


def _noise(table: Floats, within: Floats, mean_within: float) -> Floats:
    """The variance of each competition's mean, with the mean variance for a single run."""
    runs = (~np.isnan(table)).sum(axis=1)
    found: Floats = np.where(np.isnan(within), mean_within, within) / np.maximum(runs, 1)
    return found


def _true_variance(means: Floats, noise: Floats) -> float:
    """The variance of means over competitions, less what the noise of each adds; may be below 0."""
    known = ~np.isnan(means)
    return float(means[known].var(ddof=1) - noise[known].mean()) if known.sum() > 1 else math.nan
