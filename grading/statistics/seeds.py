"""Basic statistics over seeds. Each function documents its result for too few values."""

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

    NaN for fewer than two values.
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
    """Unbiased estimate of the probability that at least one of `k` attempts succeeds.

    From `successes` among `attempts` it is estimated as 1 - C(attempts - successes, k) / C(attempts, k); see Chen et
    al. 2021 (arXiv 2107.03374), equation 1.
    NaN with fewer than `k` attempts.
    """
    if k < 1 or not 0 <= successes <= attempts:
        raise ValueError(f"need k >= 1 and 0 <= successes <= attempts, got {k=}, {successes=}, {attempts=}")
    if attempts < k:
        return math.nan
    return 1 - math.comb(attempts - successes, k) / math.comb(attempts, k)


def expected_best(scores: Sequence[float], attempts: int, k: int, lower_is_better: bool) -> float:
    """Expected best score of `k` attempts drawn without replacement from `attempts`, of which `scores` were valid.

    The i-th best of n attempts is the best of k with probability C(n - i, k - 1) / C(n, k), which is the probability
    that it is drawn and all others are worse. Draws without a valid score are excluded. NaN without a valid score, if a
    score is NaN, or with fewer than `k` attempts.
    """
    if k < 1 or len(scores) > attempts:
        raise ValueError(f"need k >= 1 and at most {attempts} scores, got {k=}, {len(scores)} scores")
    if attempts < k or not scores or any(math.isnan(score) for score in scores):
        return math.nan
    ranked = sorted(scores, reverse=not lower_is_better)
    weights = [math.comb(attempts - place, k - 1) for place in range(1, len(ranked) + 1)]
    return math.fsum(weight * score for weight, score in zip(weights, ranked, strict=True)) / sum(weights)


def bootstrap_interval(values: Sequence[float], level: float = 0.95, draws: int = 10_000, seed: int = 0) -> Interval:
    """Percentile bootstrap interval of the mean, resampling `values` (one per competition) with replacement.

    Both ends are NaN for fewer than two values. Efron and Tibshirani 1993, chapter 13.
    """
    if len(values) < 2:
        return Interval(math.nan, math.nan)
    import numpy as np

    sample = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    means = sample[generator.integers(0, len(sample), (draws, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def paired_p_value(differences: Sequence[float]) -> float:
    """Two-sided p-value of Student's paired t-test of the hypothesis that the mean difference is 0.

    NaN for fewer than two differences, or if all are equal.
    """
    error = standard_error(differences)
    if math.isnan(error) or error == 0:
        return math.nan
    from scipy.special import stdtr

    return float(2 * stdtr(len(differences) - 1, -abs(mean(differences) / error)))
