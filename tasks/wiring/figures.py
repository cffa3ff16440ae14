"""Figures of a fetched leaderboard: thresholds and percentiles, against those of competition.yaml and for grading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.errors import UserError
from competitions.facts import PERCENTILE_POINTS, CompetitionFacts
from grading.medals import STORED, Leaderboard, Thresholds, thresholds_from_leaderboard
from storage.sources.kaggle.errors import KaggleError
from storage.sources.kaggle.leaderboard import Team, read_leaderboard
from storage.store import Store

_FIGURES = ("teams", "gold", "silver", "bronze", "median")
_PLACES = 2  # by which a percentile may be off: teams are removed from a leaderboard after the end, and places shift


@dataclass(frozen=True)
class Figure:
    """One figure, as competition.yaml has it and as the fetched leaderboard gives it."""

    name: str
    stored: float
    fetched: float
    same: bool


def chosen_thresholds(store: Store, facts: CompetitionFacts, leaderboard: Leaderboard) -> Thresholds:
    """The thresholds to grade with: those of competition.yaml, or of the leaderboard that was fetched last.

    Raises `UserError` if none was fetched, naming the command that does.
    """
    if leaderboard == STORED:
        return Thresholds.of(facts)
    if facts.source != "kaggle":
        raise UserError(f"{facts.id} is not on Kaggle: it has its stored leaderboard only; grade with that")
    table = read_leaderboard(store, facts.id)
    if table is None:
        raise UserError(
            f"{facts.id}: no leaderboard was fetched into {store.root}; run: mlebench leaderboard {facts.id} --refresh"
        )
    scores = [float(score) for score in table["score"].dropna()]
    return replace(_thresholds(scores, facts), leaderboard=f"{leaderboard} {table['fetched_at'].iloc[0]}")


def thresholds(teams: Sequence[Team], facts: CompetitionFacts) -> Thresholds:
    """Medal thresholds of a fetched leaderboard. Raises `KaggleError` if no team has a score."""
    return _thresholds(_scores(teams), facts)


def compare(teams: Sequence[Team], facts: CompetitionFacts) -> list[Figure]:
    """Number of teams, medal thresholds and median, stored against fetched; the same to the five decimals of reports.

    Raises `KaggleError` if no team has a score.
    """
    stored, fetched = Thresholds.of(facts), thresholds(teams, facts)
    pairs = [(name, float(getattr(stored, name)), float(getattr(fetched, name))) for name in _FIGURES]
    return [Figure(name, old, new, _same(old, new)) for name, old, new in pairs]


def compare_percentiles(teams: Sequence[Team], facts: CompetitionFacts) -> list[Figure]:
    """The scores at top 0 %, 5 % ... 100 % of the teams, stored against fetched; none where none are stored.

    Fetched is the score of the team nearest to that share. "Same" allows for two places up and down.
    """
    ranked = sorted(_scores(teams), reverse=not facts.lower_is_better)
    stored = facts.leaderboard.percentiles
    if stored is None or not ranked:
        return []
    last, figures = len(ranked) - 1, []
    for step, score in enumerate(stored):
        place = round(step / (PERCENTILE_POINTS - 1) * last)
        near = ranked[max(0, place - _PLACES) : place + _PLACES + 1]
        low, high = min(near), max(near)
        same = low <= score <= high or _same(score, low) or _same(score, high)
        figures.append(Figure(f"{100 * step // (PERCENTILE_POINTS - 1)} %", score, ranked[place], same))
    return figures


def in_order(teams: Sequence[Team], facts: CompetitionFacts) -> bool:
    """Whether Kaggle's order agrees with the metric's direction: if not, one of the two is wrong."""
    scores = _scores(teams)
    return scores == sorted(scores, reverse=not facts.lower_is_better)


def _scores(teams: Sequence[Team]) -> list[float]:
    return [team.score for team in teams if team.score is not None]


def _thresholds(scores: Sequence[float], facts: CompetitionFacts) -> Thresholds:
    if not scores:
        raise KaggleError(f"{facts.id}: no team of the leaderboard has a score")
    return thresholds_from_leaderboard(scores, facts.lower_is_better)


def _same(stored: float, fetched: float) -> bool:
    return math.isclose(stored, fetched, rel_tol=1e-9, abs_tol=5e-6)
