"""Medals: the scores that earn them, and the medal and reward for a score."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from competitions.leaderboard import leaderboard_of, medal_places

if TYPE_CHECKING:
    from competitions.facts import CompetitionFacts
    from competitions.facts import Leaderboard as LeaderboardFacts

Medal = Literal["gold", "silver", "bronze"]
Leaderboard = Literal["stored", "refreshed"]

STORED: Leaderboard = "stored"


@dataclass(frozen=True)
class Thresholds:
    """The scores that a competition's medals require.

    `gold`, `silver` and `bronze` are the worst scores that still earn the medal; `median` is the median team's score.
    """

    gold: float
    silver: float
    bronze: float
    median: float
    teams: int
    lower_is_better: bool
    human: bool = True  # False if the leaderboard consists of trained models instead of human teams
    leaderboard: str = STORED  # their source: competition.yaml, or a fetched leaderboard

    @classmethod
    def of(cls, facts: CompetitionFacts) -> Thresholds:
        """The thresholds in competition.yaml."""
        return _thresholds(facts.leaderboard, facts.metric.direction == "lower")


def thresholds_from_leaderboard(scores: Sequence[float], lower_is_better: bool, human: bool = True) -> Thresholds:
    """The thresholds of a leaderboard, given one score per team in any order.

    Raises ValueError for an empty leaderboard or a score that is not a number (it has no rank).
    """
    return _thresholds(leaderboard_of(scores, lower_is_better, human), lower_is_better)


def _thresholds(board: LeaderboardFacts, lower_is_better: bool) -> Thresholds:
    return Thresholds(
        gold=board.gold,
        silver=board.silver,
        bronze=board.bronze,
        median=board.median,
        teams=board.teams,
        lower_is_better=lower_is_better,
        human=board.human,
    )


def medal_for(score: float | None, thresholds: Thresholds) -> Medal | None:
    """The best medal that `score` earns. A tie with a threshold earns the medal; NaN and None earn nothing."""
    medals: tuple[tuple[Medal, float], ...] = (
        ("gold", thresholds.gold),
        ("silver", thresholds.silver),
        ("bronze", thresholds.bronze),
    )
    if score is None:
        return None
    return next((name for name, limit in medals if _beats(score, limit, thresholds) or score == limit), None)


def above_median(score: float | None, thresholds: Thresholds) -> bool:
    """Whether `score` is strictly better than the median team's. False for NaN and None."""
    return score is not None and _beats(score, thresholds.median, thresholds)


def human_percentile(score: float | None, percentiles: Sequence[float] | None) -> float:
    """Share of the leaderboard's teams that `score` beats, in percent (0-100).

    `percentiles` are the scores at evenly spaced places of the leaderboard from the best (top 0 %) to the last
    (top 100 %), for example 21 scores in steps of 5 %. Between two of them the share is interpolated linearly. Teams
    with the same score are not beaten. NaN without a score or a leaderboard, and if all of its scores are equal, which
    gives no direction.
    """
    if score is None or math.isnan(score) or percentiles is None or len(percentiles) < 2:
        return math.nan
    best, last = percentiles[0], percentiles[-1]
    if best == last:
        return math.nan
    # Flip signs so that values ascend from best to last. bisect_right then skips teams that tie with the score.
    sign = -1.0 if best > last else 1.0
    values, value = [sign * percentile for percentile in percentiles], sign * score
    ahead = bisect_right(values, value)  # number of points that are better than or equal to the score
    step = 100 / (len(values) - 1)
    if ahead == 0:
        return 100.0
    if ahead == len(values):
        return 0.0
    left, right = values[ahead - 1], values[ahead]
    between = 0.0 if value == left else (value - left) / (right - left)
    return 100 - step * (ahead - 1 + between)


def dense_reward(score: float | None, thresholds: Thresholds, percentiles: Sequence[float] | None) -> float:
    """Share of the leaderboard's teams that `score` beats, 0 to 1; it never falls when the score improves.

    It is the human percentile divided by 100 where that is known. Otherwise it is estimated from the thresholds, which
    are the scores of known places: linear between them; from the median down and from gold up, the share that is left
    shrinks hyperbolically with the distance, with the slope of the nearest two thresholds. 0 without a score.
    """
    if score is None or math.isnan(score):
        return 0.0
    beaten = human_percentile(score, percentiles)
    return _estimated_share(score, thresholds) if math.isnan(beaten) else beaten / 100


def _estimated_share(score: float, thresholds: Thresholds) -> float:
    """The share of teams that a score beats, as far as the thresholds tell; see `dense_reward`."""
    places, sign = medal_places(thresholds.teams), -1.0 if thresholds.lower_is_better else 1.0
    medals = [(thresholds.bronze, places.bronze), (thresholds.silver, places.silver), (thresholds.gold, places.gold)]
    value, values = sign * score, [sign * limit for limit in (thresholds.median, *(limit for limit, _ in medals))]
    shares = [0.5, *(max(0.5, 1 - place / thresholds.teams) for _, place in medals)]
    reached = bisect_right(values, value)
    if reached == 0:
        return shares[0] * _left(values[0] - value, shares[0], values[:2], shares[:2])
    if reached == len(values):
        above = 1 - shares[-1]
        return 1 - above * _left(value - values[-1], above, values[-2:], shares[-2:])
    between = (value - values[reached - 1]) / (values[reached] - values[reached - 1])
    return shares[reached - 1] + between * (shares[reached] - shares[reached - 1])


def _left(distance: float, share: float, values: list[float], shares: list[float]) -> float:
    """What is left of a `share` at a distance beyond the last threshold, 0 to 1: half where a line would end."""
    if distance == 0 or shares[0] == shares[1]:
        return 1.0
    half = share * (values[1] - values[0]) / (shares[1] - shares[0])
    return half / (half + distance) if half > 0 and math.isfinite(distance) else 0.0


def _beats(score: float, limit: float, thresholds: Thresholds) -> bool:
    return score < limit if thresholds.lower_is_better else score > limit
