"""Positions of scores on axes. Better is to the right on every axis, regardless of the metric's direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from grading.medals import Thresholds

# Positions of the thresholds on the common medal scale, in percent of its width.
MEDAL_SCALE = {"median": 38.0, "bronze": 56.0, "silver": 71.0, "gold": 86.0}
GUTTER = 7.0  # results without a score are placed left of it
_INSET = 1.4  # minimum distance, in percent, of a mark from the edges of its band, so that it is clearly inside


@dataclass(frozen=True)
class Axis:
    """A linear axis of scores from `worse` on the left to `better` on the right."""

    worse: float
    better: float

    def at(self, score: float) -> float:
        """Position in percent. Outside 0-100 for scores beyond the axis."""
        if math.isinf(score):
            return math.copysign(math.inf, score * (self.better - self.worse))
        return 100 * (score - self.worse) / (self.better - self.worse)


def medal_position(score: float, thresholds: Thresholds) -> float:
    """Position of `score` on the common medal scale, in percent.

    Between two thresholds the position is linear in the score; beyond the outer ones it is compressed towards the ends.
    A mark is always inside the band of the medal that it has earned: a tie with a medal's threshold earns the medal,
    but a tie with the median is not above it.
    """
    sign = -1.0 if thresholds.lower_is_better else 1.0
    value = sign * score
    knots = [(sign * getattr(thresholds, name), at) for name, at in MEDAL_SCALE.items()]
    (median, median_at), (gold, gold_at) = knots[0], knots[-1]
    unit = (gold - median) or abs(median) or 1.0
    if value <= median:
        room = median_at - GUTTER - 2 * _INSET
        return median_at - _INSET - room * _squeeze((median - value) / unit)
    if value >= gold:
        return gold_at + _INSET + (100 - gold_at - 2 * _INSET) * _squeeze(4 * (value - gold) / unit)
    for (low, low_at), (high, high_at) in pairwise(knots):
        if value < high:
            at = low_at + (high_at - low_at) * (value - low) / (high - low)
            return min(max(at, low_at + _INSET), high_at - _INSET)
    raise AssertionError("NaN has no position")


def score_axis(thresholds: Thresholds, scores: Sequence[float]) -> Axis:
    """A linear axis that shows all thresholds, and all scores except distant outliers."""
    sign = -1.0 if thresholds.lower_is_better else 1.0
    median, gold = sign * thresholds.median, sign * thresholds.gold
    values = [sign * score for score in scores if math.isfinite(score)]
    unit = (gold - median) or abs(max(values, default=1.0) - gold) or abs(gold) or 1.0
    left = max(median - 2 * unit, min([median - 0.25 * unit, *(value - 0.05 * unit for value in values)]))
    right = min(gold + 2 * unit, max([gold + 0.12 * unit, *(value + 0.05 * unit for value in values)]))
    return Axis(sign * left, sign * right)


def _squeeze(distance: float) -> float:
    """Map distances from 0 to infinity to 0 to 1."""
    return 1.0 if math.isinf(distance) else distance / (1 + distance)
