"""Thresholds and percentiles of a leaderboard, and their comparison with those stored in competition.yaml.

A leaderboard is given as its teams' scores, in the order of their ranks. Teams without a score are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import UserError
from competitions.facts import PERCENTILE_POINTS, CompetitionFacts
from grading.medals import Thresholds, thresholds_from_leaderboard

_FIGURES = ("teams", "gold", "silver", "bronze", "median")
_RANK_TOLERANCE = 2
"""Tolerance of a percentile in ranks: teams are removed after a competition has ended, and ranks shift."""


@dataclass(frozen=True)
class Figure:
    """One figure: its value in competition.yaml, and its value in the fetched leaderboard."""

    name: str
    stored: float
    fetched: float
    same: bool


def thresholds(scores: Sequence[float], facts: CompetitionFacts) -> Thresholds:
    """Medal thresholds of a leaderboard. Raises `UserError` if it is empty."""
    if not scores:
        raise UserError(f"{facts.id}: no team of the leaderboard has a score")
    return thresholds_from_leaderboard(scores, facts.lower_is_better)


def compare(scores: Sequence[float], facts: CompetitionFacts) -> list[Figure]:
    """Compare the stored number of teams, medal thresholds and median with the fetched ones.

    Two figures are the same if they agree to five decimals, as in reports. Raises `UserError` if the leaderboard is
    empty.
    """
    stored, fetched = Thresholds.of(facts), thresholds(scores, facts)
    pairs = [(name, float(getattr(stored, name)), float(getattr(fetched, name))) for name in _FIGURES]
    return [Figure(name, old, new, _same(old, new)) for name, old, new in pairs]


def compare_percentiles(scores: Sequence[float], facts: CompetitionFacts) -> list[Figure]:
    """Compare the stored scores at the top 0 %, 5 % ... 100 % of the teams with the fetched ones.

    The fetched score is that of the team nearest to the percentile. Two scores are the same if the stored one lies
    between those of the teams two ranks above and below. Empty if the facts store no percentiles.
    """
    ranked = sorted(scores, reverse=not facts.lower_is_better)
    stored = facts.leaderboard.percentiles
    if stored is None or not ranked:
        return []
    last, figures = len(ranked) - 1, []
    for step, score in enumerate(stored):
        rank_index = round(step / (PERCENTILE_POINTS - 1) * last)
        neighbours = ranked[max(0, rank_index - _RANK_TOLERANCE) : rank_index + _RANK_TOLERANCE + 1]
        low, high = min(neighbours), max(neighbours)
        same = low <= score <= high or _same(score, low) or _same(score, high)
        figures.append(Figure(f"{100 * step // (PERCENTILE_POINTS - 1)} %", score, ranked[rank_index], same))
    return figures


def in_order(scores: Sequence[float], facts: CompetitionFacts) -> bool:
    """Whether the order of the scores agrees with the metric's direction. If not, one of the two is wrong."""
    return list(scores) == sorted(scores, reverse=not facts.lower_is_better)


def _same(stored: float, fetched: float) -> bool:
    return math.isclose(stored, fetched, rel_tol=1e-9, abs_tol=5e-6)
