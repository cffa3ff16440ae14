"""The medal thresholds that a user has chosen: those of competition.yaml, or of a fetched leaderboard."""

from __future__ import annotations

from dataclasses import replace

from common.errors import UserError
from competitions.facts import CompetitionFacts
from grading.leaderboards import thresholds
from grading.medals import STORED, Leaderboard, Thresholds
from storage.sources.kaggle.leaderboard import read_leaderboard
from storage.store import Store


def chosen_thresholds(store: Store, facts: CompetitionFacts, leaderboard: Leaderboard) -> Thresholds:
    """The thresholds to grade with: those of competition.yaml, or of the most recently fetched leaderboard.

    Raises `UserError` if none was fetched; the message names the command that fetches it.
    """
    if leaderboard == STORED:
        return Thresholds.of(facts)
    if facts.source != "kaggle":
        raise UserError(f"{facts.id} is not on Kaggle and only has its stored leaderboard; use --leaderboard stored")
    table = read_leaderboard(store, facts.id)
    if table is None:
        raise UserError(
            f"{facts.id}: no leaderboard was fetched into {store.root}; run: mlebench leaderboard {facts.id} --refresh "
            f"--store {store.shown(store.root)}"
        )
    scores = [float(score) for score in table["score"].dropna()]
    return replace(thresholds(scores, facts), leaderboard=f"{leaderboard} {table['fetched_at'].iloc[0]}")
