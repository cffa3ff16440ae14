"""How the rewards of episodes develop: means of batches in the order of time, as points of a learning curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from grading.statistics.intervals import interval_over_runs
from grading.statistics.seeds import Interval

_FEWEST, _MOST = 5, 20
"""Batches, of at least ten episodes of each competition where there are enough."""


@dataclass(frozen=True)
class Batch:
    """Episodes that followed each other, the `first` to the `last` of all episodes with a reward."""

    first: int
    last: int
    episodes: int
    reward: float
    """The mean."""
    interval: Interval
    """Of the mean, for other episodes like these: 95 %."""
    valid: float
    """Share of episodes with a valid submission."""

    @property
    def middle(self) -> float:
        """The place of the batch on an axis of episodes."""
        return (self.first + self.last) / 2


def rewarded(episodes: pd.DataFrame) -> pd.DataFrame:
    """The episodes with a reward in the order of time, with their `number` in it. Abandoned ones have none."""
    found = episodes[episodes["reward"].notna()].sort_values(["started_at", "episode_id"], kind="stable")
    return found.assign(number=range(1, len(found) + 1))


def batches(episodes: pd.DataFrame, competition_id: str | None = None) -> list[Batch]:
    """Means of five to twenty batches of as many episodes each; the last one may have fewer.

    Args:
        episodes: what `rewarded` returns.
        competition_id: the competition whose episodes count; by default all. The batches are the same.
    """
    count, competitions = len(episodes), episodes["competition_id"].nunique()
    size = max(math.ceil(count / _MOST), min(10 * competitions, math.ceil(count / _FEWEST)), 1)
    own = episodes if competition_id is None else episodes[episodes["competition_id"] == competition_id]
    found = []
    for start in range(0, count, size):
        last = min(start + size, count)
        rows = own[(own["number"] > start) & (own["number"] <= last)]
        if len(rows):
            rewards = [float(reward) for reward in rows["reward"]]
            interval = interval_over_runs([rewards], binary=False)
            valid = float(rows["valid"].astype(float).mean())
            found.append(Batch(start + 1, last, len(rows), sum(rewards) / len(rewards), interval, valid))
    return found
