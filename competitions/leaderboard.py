"""Leaderboards as lists of scores: the places that earn medals, and the facts that follow from the scores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from competitions.facts import PERCENTILE_POINTS, Leaderboard


@dataclass(frozen=True)
class MedalPlaces:
    """The last place (1 = winner) that still earns each medal."""

    gold: int
    silver: int
    bronze: int


def medal_places(teams: int) -> MedalPlaces:
    """The last medal places among `teams` ranked teams, by Kaggle's progression rules.

    Fewer than 100 teams: top 10 / 20 / 40 %. 100-249: place 10, top 20 / 40 %. 250-999: place 10 + 0.2 % of the teams,
    places 50 and 100. From 1,000: place 10 + 0.2 %, top 5 / 10 %. Fractions round down, but never below place 1.
    Raises ValueError without teams. Source: https://www.kaggle.com/progression (competition medals).
    """
    if teams < 1:
        raise ValueError(f"a leaderboard has at least one team, got {teams}")
    # Integer arithmetic, so that places do not depend on the rounding of 0.1 * teams.
    if teams < 100:
        gold, silver, bronze = teams // 10, teams // 5, 2 * teams // 5
    elif teams < 250:
        gold, silver, bronze = 10, teams // 5, 2 * teams // 5
    elif teams < 1000:
        gold, silver, bronze = 10 + teams // 500, 50, 100
    else:
        gold, silver, bronze = 10 + teams // 500, teams // 20, teams // 10
    return MedalPlaces(max(1, gold), max(1, silver), max(1, bronze))


def leaderboard_of(scores: Sequence[float], lower_is_better: bool, human: bool = True) -> Leaderboard:
    """Thresholds, median and percentiles of a leaderboard, given one score per team in any order.

    Raises ValueError for an empty leaderboard or a score that is not a number (it has no rank).
    """
    if any(math.isnan(score) for score in scores):
        raise ValueError("a leaderboard score that is not a number cannot be ranked")
    places = medal_places(len(scores))
    ranked = sorted(scores, reverse=not lower_is_better)
    steps = PERCENTILE_POINTS - 1
    return Leaderboard(
        teams=len(ranked),
        gold=ranked[places.gold - 1],
        silver=ranked[places.silver - 1],
        bronze=ranked[places.bronze - 1],
        median=statistics.median(ranked),
        human=human,
        percentiles=[ranked[round(step / steps * (len(ranked) - 1))] for step in range(PERCENTILE_POINTS)],
    )
