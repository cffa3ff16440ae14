"""Basic statistics over seeds. Each function documents its result for too few values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LARGE = 256  # binary exponent up to which squares and sums cannot overflow


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, rounded once, so that the order of the values does not matter.

    NaN without values, if a value is NaN, or if there are infinities of both signs.
    """
    if not values:
        return math.nan
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError):  # huge numbers, or infinities of both signs
        total = math.inf
    if math.isfinite(total):
        return values[0] if min(values) == max(values) else total / len(values)
    if not all(math.isfinite(value) for value in values):
        return sum(values)  # an infinity, or NaN
    # Sums of huge finite numbers would overflow although their mean is finite. A power of two changes no digit.
    scale = _exponent(values)
    return math.ldexp(math.fsum(math.ldexp(value, -scale) for value in values) / len(values), scale)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean: sample standard deviation (n - 1 in its denominator) over sqrt(n).

    NaN for fewer than two values, and if a value is not finite. 0 if the values are equal but for rounding: else a test
    would take the difference between 1 - 2/3 and 1/3 for a spread, and find any mean significant.
    """
    n = len(values)
    if n < 2 or not all(math.isfinite(value) for value in values):
        return math.nan
    if are_equal(values):
        return 0.0
    scale = _exponent(values)
    scaled = [math.ldexp(value, -scale) for value in values]
    centre = mean(scaled)
    return math.ldexp(math.sqrt(math.fsum((value - centre) ** 2 for value in scaled) / (n - 1) / n), scale)


def are_equal(values: Sequence[float]) -> bool:
    """Whether finite values are the same, but for the rounding of computing them.

    >>> are_equal([1 - 2 / 3, 1 / 3]), are_equal([1.0, 1.000001]), are_equal([0.0, 1e-300])
    (True, False, False)
    """
    low, high = min(values), max(values)
    return low == high or ((low > 0) == (high > 0) and high / 2 - low / 2 <= _ROUNDING * (abs(high) / 2 + abs(low) / 2))


_ROUNDING = 2.0**-47  # 32 units in the last place: differences of shares of up to about 30 seeds


def _exponent(values: Sequence[float]) -> int:
    """The power of two by which finite values are divided so that their squares are finite; 0 unless they are huge."""
    return max(0, math.frexp(max(map(abs, values)))[1] - _LARGE)


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
    total = sum(weights)
    # The weights are whole numbers of any size; their quotients lie between 0 and 1.
    parts = [weight / total * score for weight, score in zip(weights, ranked, strict=True) if weight]
    return sum(parts) if not all(map(math.isfinite, parts)) else mean(parts) * len(parts)


def smallest_difference(error: float, degrees: int, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest true difference that a two-sided paired t-test would find in `power` of all repetitions.

    (t(1 - alpha/2) + t(power)) x standard error of the paired difference, with `degrees` of freedom; Bloom 1995
    (Minimum detectable effects, Evaluation Review 19(5)). NaN without a standard error or degrees of freedom, and if
    the standard error is 0: equal differences do not tell how much others would vary.
    """
    if not error > 0 or degrees < 1:
        return math.nan
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + level) / 2) + stdtrit(degrees, power)) * error


@dataclass(frozen=True)
class Welch:
    """The difference of two means, its 95 % interval, and the two-sided p-value of the hypothesis that it is 0."""

    difference: float
    interval: Interval
    p_value: float


def welch(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Welch:
    """Welch's t-test of the mean of `b` minus that of `a`, for independent samples with different variances.

    Degrees of freedom by Satterthwaite 1946. Interval and p-value are NaN with fewer than two values on a side, if a
    value is not finite, and if all values of both sides are equal to their mean.
    """
    difference = mean(b) - mean(a)
    unknown = Welch(difference, Interval(math.nan, math.nan), math.nan)
    errors = standard_error(a), standard_error(b)
    error = math.hypot(*errors)
    if not (math.isfinite(error) and math.isfinite(difference)) or error == 0:
        return unknown
    from scipy.special import stdtr, stdtrit

    # Shares of the variance, so that no fourth power over- or underflows.
    shares = [(each / error) ** 2 for each in errors]
    degrees = 1 / math.fsum(share**2 / (len(side) - 1) for share, side in zip(shares, (a, b), strict=True))
    reach = float(stdtrit(degrees, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(degrees, -abs(difference / error)))
    return Welch(difference, Interval(difference - reach, difference + reach), p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for testing several hypotheses at once, by Holm 1979, in the given order.

    The i-th smallest of m is multiplied by m - i + 1 and never falls below the ones before it, and never exceeds 1. NaN
    stays NaN and does not count as a hypothesis.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    adjusted, least = [math.nan] * len(p_values), 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        adjusted[place] = least
    return adjusted


def paired_p_value(differences: Sequence[float]) -> float:
    """Two-sided p-value of Student's paired t-test of the hypothesis that the mean difference is 0.

    NaN for fewer than two differences, or if all are 0. If all are equal otherwise, t is infinite however few they are;
    then it is the p-value of the exact test that flips signs, 2^(1 - n).
    """
    error = standard_error(differences)
    if error == 0 and any(differences):
        return float(2.0 ** (1 - len(differences)))
    if math.isnan(error) or error == 0:
        return math.nan
    from scipy.special import stdtr

    return float(2 * stdtr(len(differences) - 1, -abs(mean(differences) / error)))
