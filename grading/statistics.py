"""Small statistics over seeds; each says what it returns when there is too little data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN without values."""
    return math.fsum(values) / len(values) if values else math.nan


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean: sample standard deviation (n - 1 in its denominator) over sqrt(n).

    NaN for fewer than two values: one value says nothing about its spread.
    """
    n = len(values)
    if n < 2:
        return math.nan
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (n - 1) / n)


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Confidence interval of the mean by Student's t with n - 1 degrees of freedom.

    Both ends are NaN for fewer than two values. Not clipped: an interval of a rate may reach beyond 0 or 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, got {level}")
    n = len(values)
    if n < 2:
        return Interval(math.nan, math.nan)
    from scipy.special import stdtrit  # slow to import

    reach = float(stdtrit(n - 1, (1 + level) / 2)) * standard_error(values)
    return Interval(mean(values) - reach, mean(values) + reach)


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of `k` attempts succeeds, from `successes` among `attempts`.

    1 - C(attempts - successes, k) / C(attempts, k), Chen et al. 2021 (arXiv 2107.03374), equation 1.
    NaN when fewer than `k` attempts were made.
    """
    if k < 1 or not 0 <= successes <= attempts:
        raise ValueError(f"need k >= 1 and 0 <= successes <= attempts, got {k=}, {successes=}, {attempts=}")
    if attempts < k:
        return math.nan
    return 1 - math.comb(attempts - successes, k) / math.comb(attempts, k)
