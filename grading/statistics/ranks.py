"""Ranks of agents with their uncertainty, and the probability that one agent is better than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grading.statistics.resampling import (
    DRAWS,
    Floats,
    Vary,
    competition_weights,
    have_runs,
    means_of,
    run_weights,
    table_of,
)

Bools = NDArray[np.bool_]
_EQUAL = 1e-9  # sums of the same values in another order differ by less


@dataclass(frozen=True)
class Rank:
    """The rank of an agent among others; 1 is the best, and equal agents share the better rank.

    `low` and `high` are the ends of its 95 % interval. `rank` is None for an agent without a competition in common with
    another one, whose interval has all ranks.
    """

    agent: str
    rank: int | None
    low: int
    high: int


@dataclass(frozen=True)
class Ranking:
    """Ranks of agents, and by pairs the probability that the first is better than the second.

    A probability is NaN if the two have no competition in common, or too few runs to know how much runs vary.
    """

    ranks: list[Rank]
    better: dict[tuple[str, str], float]


def ranking(tables: Mapping[str, ArrayLike], vary: Vary = "competitions", draws: int = DRAWS, seed: int = 0) -> Ranking:
    """The rank of each agent with a 95 % bootstrap interval, and P(A > B) of all pairs.

    In each resample, agents are compared by pairs, over the competitions that both have, of the mean of each
    competition's graded runs; the rank of an agent is 1 plus the number of agents that are better. P(A > B) is the
    share of resamples in which A is better, and half of those in which both are equal. Ranks with bootstrap intervals
    are those of Chatbot Arena (Chiang et al. 2024, arXiv 2403.04132), for means in place of Bradley-Terry scores.

    Args:
        tables: for each agent a table with a row per competition, the same in all tables, and a column per seed: 0 or
            1 for medals, or human percentiles; NaN where a run is not graded.
        vary: "competitions" resamples competitions with their runs, all agents together: the ranks on competitions
            like these. "runs" resamples the runs of each competition: the ranks on these competitions.
        draws: number of resamples.
        seed: of the generator.

    Raises ValueError if the tables have different numbers of rows, or no row.
    """
    names, values = list(tables), [table_of(table) for table in tables.values()]
    if len({len(table) for table in values}) != 1 or not len(values[0]):
        raise ValueError("need tables with the same competitions, at least one")
    has = np.array([(~np.isnan(table)).any(axis=1) for table in values], dtype=float)
    means = np.array([np.nan_to_num(means_of(table)) for table in values])
    both = has @ has.T > 0
    np.fill_diagonal(both, False)
    generator = np.random.default_rng(seed)
    if vary == "runs":
        repeated = np.array([have_runs(table, 2) for table in values])
        resampled = np.array([(run_weights(t, draws, generator) * np.nan_to_num(t)).sum(axis=2) for t in values])
        sums = resampled.transpose(1, 0, 2) @ has.T  # of a's means over the competitions that b has, too
        ahead, known = sums - sums.transpose(0, 2, 1), both & repeated & repeated[:, None]
    else:
        pairs = means[:, None] * has - has[:, None] * means
        weights = competition_weights(len(values[0]), draws, generator)
        ahead, known = np.einsum("dc,abc->dab", weights, pairs, optimize=True), both & (has @ has.T > 1)
    now = means @ has.T
    return Ranking(_ranks(names, now - now.T, both, ahead, known), _better(names, ahead, known))


def _ranks(names: list[str], now: Floats, both: Bools, ahead: Floats, known: Bools) -> list[Rank]:
    """Ranks from what each is ahead of each now, and in each draw; what is not known of a pair may be either."""
    behind = (ahead < -_EQUAL) & known
    lows, highs = 1 + behind.sum(axis=2), len(names) - ((ahead > _EQUAL) & known).sum(axis=2)
    low = np.quantile(lows, 0.025, axis=0, method="lower").astype(int).tolist()
    high = np.quantile(highs, 0.975, axis=0, method="higher").astype(int).tolist()
    place = (1 + ((now < -_EQUAL) & both).sum(axis=1)).tolist()
    ranked = [len(names) == 1 or bool(row.any()) for row in both]
    return [Rank(name, place[n] if ranked[n] else None, low[n], high[n]) for n, name in enumerate(names)]


def _better(names: list[str], ahead: Floats, known: Bools) -> dict[tuple[str, str], float]:
    shares = (ahead > _EQUAL).mean(axis=0) + (np.abs(ahead) <= _EQUAL).mean(axis=0) / 2
    shares = np.where(known, shares, np.nan).tolist()
    return {(a, b): shares[m][n] for m, a in enumerate(names) for n, b in enumerate(names) if m != n}
