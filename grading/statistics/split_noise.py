"""How much scores and medals depend on which rows are in the test set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from grading.medals import Thresholds
from grading.report import SCORE_DECIMALS
from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import SERIES

PROBABILITIES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median")
LUCK = (0.05, 0.95)
"""Between these probabilities, a medal depends on the choice of test rows."""
MOST_PAIRED = 1_000
"""Halves of which all pairs are taken; of more, these many are."""


def split_noise(
    score: float, halves: Sequence[float], units: int, drawn: int, thresholds: Thresholds
) -> dict[str, float]:
    """Standard error of a score, and the probability of each medal on another test set of the same size.

    The mean of `drawn` of n units, drawn without replacement, varies with variance s^2 (n - drawn) / (drawn n), that of
    all n with s^2 / n. Deviations of `halves` are therefore multiplied by sqrt(drawn / (n - drawn)): the delete-d
    jackknife of Shao and Wu 1989. The result is exact for scores that are means of units, and a first-order
    approximation for other smooth ones. Thresholds are taken as known.

    The score on another test set differs from this one by the noise of both, so its predictive variance is twice the
    sampling variance (Whitmore 1986, Prediction limits for a univariate normal observation). A probability is the share
    of the scores `score` + a - b that earn the medal, for all pairs of stretched halves a and b.

    Args:
        score: the score on all units.
        halves: finite scores on random halves.
        units: n, the number of units.
        drawn: units in a half.
        thresholds: what medals need.
    """
    if len(halves) < 2 or not 0 < drawn < units:
        return {"standard_error": math.nan, **{f"{name}_probability": math.nan for name in PROBABILITIES}}
    stretch = math.sqrt(drawn / (units - drawn))
    # Unlike that of a mean, the standard deviation of the scores themselves.
    spread = standard_error(halves) * math.sqrt(len(halves)) * stretch
    others = _predicted(score, halves[:MOST_PAIRED], stretch)
    return {"standard_error": spread, **_probabilities(others, thresholds)}


def _predicted(score: float, halves: Sequence[float], stretch: float) -> NDArray[np.float64]:
    """Scores on other test sets, one for each pair of halves, rounded as scores are."""
    values = stretch * np.asarray(halves, dtype=float)
    pairs = ~np.eye(len(values), dtype=bool)
    with np.errstate(over="ignore"):  # huge scores become infinite, and are compared all the same
        others: NDArray[np.float64] = np.round(score + (values[:, None] - values)[pairs], SCORE_DECIMALS)
    return others


def _probabilities(scores: NDArray[np.float64], thresholds: Thresholds) -> dict[str, float]:
    """The share of scores with each medal, as `grading.medals.medal_for` and `above_median` say of one score."""
    sign = -1.0 if thresholds.lower_is_better else 1.0
    found, left = {}, np.ones(len(scores), dtype=bool)
    for name in ("gold", "silver", "bronze"):
        earned = left & (sign * scores >= sign * getattr(thresholds, name))
        found[f"{name}_medal_probability"] = float(earned.mean())
        left &= ~earned
    above = float((sign * scores > sign * thresholds.median).mean())
    return {"any_medal_probability": float((~left).mean()), **found, "above_median_probability": above}


def medals_by_luck(noise: pd.DataFrame) -> pd.DataFrame:
    """One row per series: how many runs are known, and how much of the medals is due to the choice of test rows.

    Columns besides the series: `runs`, `known` (with a standard error), `medals` (expected number of medals among the
    known on other test sets), `sem` (standard deviation of the share of medals among the known on other test sets; the
    seeds of a competition share their test set, and their noise is taken as the same), `luck` (runs with a probability
    of a medal between 5 and 95 %).
    """
    columns = [*SERIES, "runs", "known", "medals", "sem", "luck"]
    rows: list[dict[str, Any]] = []
    for key, part in noise.groupby(SERIES, sort=True) if len(noise) else ():
        known = part[part["standard_error"].notna()]
        chances = known["any_medal_probability"].astype(float)
        by_competition = [
            (len(own), _spread(own["any_medal_probability"].tolist())) for _, own in known.groupby("competition_id")
        ]
        variance = math.fsum((count * spread) ** 2 for count, spread in by_competition)
        figures: Mapping[str, Any] = {
            "runs": len(part),
            "known": len(known),
            "medals": float(chances.sum()),
            "sem": math.sqrt(variance) / len(known) if len(known) else math.nan,
            "luck": int(((chances > LUCK[0]) & (chances < LUCK[1])).sum()),
        }
        rows.append({**dict(zip(SERIES, key, strict=True)), **figures})
    return pd.DataFrame(rows, columns=columns)


def _spread(chances: Sequence[float]) -> float:
    """Mean standard deviation of the medals of one competition, given their probabilities."""
    return mean([math.sqrt(chance * (1 - chance)) for chance in chances])
