"""Confidence intervals of a mean of outcomes between 0 and 1: over other runs, and over other competitions, too.

The outcomes are given by competition, because runs of the same competition are alike. Two questions have two intervals:
what other runs of *these* competitions would give, and what runs of *other competitions like these* would give.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from grading.statistics.seeds import Interval, mean, standard_error

UNKNOWN = Interval(math.nan, math.nan)
COVERED = 0.9
"""Share of the competitions that must have k graded runs for a figure about k runs, such as a variance about two."""


@dataclass(frozen=True)
class RunVariance:
    """The variance of a mean over other runs of the same competitions, and its degrees of freedom.

    NaN if fewer than nine in ten competitions have two runs: the others may vary otherwise.
    """

    variance: float
    degrees: int


def run_variance(outcomes: Collection[Sequence[float]], binary: bool = True) -> RunVariance:
    """The variance of the mean of `outcomes`, one sequence of runs for each competition, over other runs.

    Runs are independent, so the variance is the sum over competitions of s^2 / n, divided by the squared number of
    competitions. s^2 is the sample variance within the competition; where it has a single run, that of all competitions
    pooled. Outcomes that are `binary` (0 or 1) often agree by chance, and s^2 is then too small: one more competition
    is added, in which one run of `n` differs (as Agresti and Coull 1998 add successes and failures to a share).
    """
    sizes = [len(runs) for runs in outcomes]
    degrees = sum(sizes) - len(sizes)
    if sum(size > 1 for size in sizes) < COVERED * len(sizes) or degrees < 1:
        return RunVariance(math.nan, 0)
    squares = [_squares(runs) for runs in outcomes]
    most = max(sizes)
    added = 1 / most if binary else 0.0
    pooled = (math.fsum(squares) + added * (most - 1)) / (degrees + (most - 1 if added else 0))
    parts = [pooled / n if n == 1 else square / (n - 1) / n for n, square in zip(sizes, squares, strict=True)]
    return RunVariance((math.fsum(parts) + added / most) / len(sizes) ** 2, degrees)


def _squares(runs: Sequence[float]) -> float:
    """The sum of squared distances from the mean."""
    if min(runs) == max(runs):
        return 0.0
    centre = mean(runs)
    return math.fsum([(value - centre) ** 2 for value in runs])


def interval_over_runs(outcomes: Collection[Sequence[float]], level: float = 0.95, binary: bool = True) -> Interval:
    """Interval of a rate, the mean over competitions of the mean over runs: other runs of the same competitions.

    `outcomes` has the outcomes of the runs of each competition, between 0 and 1, and 0 or 1 if they are `binary`. The
    interval is that of a share among as many independent runs as would have the same variance (`run_variance`), and at
    least as many as there are: runs of different competitions vary less together than runs of one would (Hoeffding
    1956). Of outcomes that are not binary, the variance has no addition that makes up for few degrees of freedom, so
    that the number is multiplied by (z / t)^2 (Korn and Graubard 1998).
    """
    if not outcomes:
        return UNKNOWN
    runs = len(outcomes) ** 2 / math.fsum(1 / len(each) for each in outcomes)  # their number, if all have the same
    share = mean([mean(each) for each in outcomes])
    known = run_variance(outcomes, binary)
    if not known.variance > 0:
        return share_interval(share, runs, level)
    factor = 1.0 if binary else (_reach(math.inf, level) / _reach(known.degrees, level)) ** 2
    return share_interval(share, max(runs, factor * share * (1 - share) / known.variance), level)


def count_interval(counts: Collection[Sequence[float]], level: float = 0.95) -> Interval:
    """Interval of a mean over competitions of the mean count of runs: other runs of the same competitions.

    The gamma interval of a rate (Fay and Feuer 1997, Statistics in Medicine 16) for the variance over runs, multiplied
    by (t / z)^2, and at least that of as many independent events: it is not below 0, and never a point. NaN where the
    variance is.
    """
    known = run_variance(counts, binary=False)
    if math.isnan(known.variance):
        return UNKNOWN
    rate = mean([mean(each) for each in counts])
    independent = math.fsum(1 / len(each) for each in counts) / len(counts) ** 2
    factor = (_reach(known.degrees, level) / _reach(math.inf, level)) ** 2
    return rate_interval(rate, max(independent, factor * known.variance / rate) if rate else independent, level)


def rate_interval(rate: float, unit: float, level: float = 0.95) -> Interval:
    """The exact interval of a rate that is a number of independent events times `unit`; the number may be a fraction.

    The gamma interval of Fay and Feuer 1997 for the variance `rate` x `unit`.
    """
    from scipy.special import gammaincinv  # slow to import

    events, tail = rate / unit, (1 - level) / 2
    low = float(gammaincinv(events, tail)) * unit if events else 0.0
    return Interval(low, float(gammaincinv(events + 1, 1 - tail)) * unit)


def _reach(degrees: float, level: float) -> float:
    """The quantile of Student's t that ends an interval; of the normal distribution with infinite degrees."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(degrees, (1 + level) / 2))


def interval_over_competitions(means: Sequence[float], level: float = 0.95) -> Interval:
    """Interval of the mean of `means`, each 0 to 1: other competitions like these, and other runs.

    The spread of the means covers both. The interval is that of a share among as many independent competitions as would
    have the same variance, and at least as many as there are. NaN with fewer than two competitions.
    """
    if len(means) < 2:
        return UNKNOWN
    share, variance = mean(means), standard_error(means) ** 2
    return share_interval(share, max(len(means), share * (1 - share) / variance) if variance > 0 else len(means), level)


def share_interval(share: float, trials: float, level: float = 0.95) -> Interval:
    """The exact interval of a share among independent trials, whose number need not be whole.

    Clopper and Pearson 1934, with the effective number of trials of Korn and Graubard 1998 (Survey Methodology 24). It
    lies between 0 and 1, and is never a point.
    """
    if not (math.isfinite(share) and math.isfinite(trials)):
        return UNKNOWN
    from scipy.special import betaincinv  # slow to import

    hits, tail = share * trials, (1 - level) / 2
    misses = trials - hits
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return Interval(low, high)


def within_range(interval: Interval) -> Interval:
    """The interval of a difference of shares, cut at -1 and 1; NaN stays NaN."""
    return Interval(max(interval.low, -1.0), min(interval.high, 1.0))  # in this order, because max(-1, NaN) is -1
