"""Correlation of results with something else over competitions, with intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grading.statistics.seeds import are_equal

_Z95 = 1.959963984540054
MIN_COMPETITIONS = 4
"""Minimum number of competitions for a confidence interval."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's and Spearman's coefficients over `n` pairs with 95 % intervals and p-values; NaN where undefined."""

    n: int
    pearson: float
    pearson_low: float
    pearson_high: float
    pearson_p: float
    spearman: float
    spearman_low: float
    spearman_high: float
    spearman_p: float


def correlation(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Correlation of pairs. Pairs with NaN are left out.

    Intervals by Fisher's z, with standard error 1/sqrt(n - 3) for Pearson's coefficient and
    sqrt((1 + r^2/2) / (n - 3)) for Spearman's (Bonett and Wright 2000). P-values are two-sided, of the hypothesis that
    there is no correlation: t = r sqrt((n - 2) / (1 - r^2)) with n - 2 degrees of freedom.
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    n = len(pairs)
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if n < 2 or _equal(first) or _equal(second):
        pearson = spearman = math.nan
    else:
        pearson, spearman = _pearson(first, second), _pearson(_ranks(first), _ranks(second))
    if n < MIN_COMPETITIONS:
        nan = math.nan
        return Correlation(n, pearson, nan, nan, nan, spearman, nan, nan, nan)
    by_pearson = _interval(pearson, 1 / math.sqrt(n - 3))
    by_spearman = _interval(spearman, math.sqrt((1 + spearman**2 / 2) / (n - 3)))
    return Correlation(n, pearson, *by_pearson, _p_value(pearson, n), spearman, *by_spearman, _p_value(spearman, n))


def _equal(values: Sequence[float]) -> bool:
    return are_equal(values) if all(map(math.isfinite, values)) else min(values) == max(values)


def _p_value(r: float, n: int) -> float:
    if math.isnan(r) or n < MIN_COMPETITIONS:
        return math.nan
    if abs(r) >= 1:
        return 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))


def _pearson(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's coefficient; NaN if a value is infinite, or all values of a side are equal."""
    if not all(map(math.isfinite, (*x, *y))):
        return math.nan
    dx, dy = _deviations(x), _deviations(y)
    spread = math.sqrt(math.fsum(a * a for a in dx) * math.fsum(b * b for b in dy))
    if spread == 0:
        return math.nan
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / spread))


def _deviations(values: Sequence[float]) -> list[float]:
    """Deviations from the mean over a power of two, which no correlation depends on, so that nothing overflows."""
    exponent = math.frexp(max(map(abs, values)))[1]
    scaled = [math.ldexp(value, -exponent) for value in values]
    centre = math.fsum(scaled) / len(scaled)
    return [value - centre for value in scaled]


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs.

    >>> _ranks([10.0, 30.0, 10.0])
    [1.5, 3.0, 1.5]
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + 1 + end) / 2
        start = end
    return ranks


def _interval(r: float, error: float) -> tuple[float, float]:
    if math.isnan(r):
        return math.nan, math.nan
    if abs(r) >= 1:
        return r, r
    z = math.atanh(r)
    return math.tanh(z - _Z95 * error), math.tanh(z + _Z95 * error)
