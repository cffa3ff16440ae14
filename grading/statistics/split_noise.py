"""How much scores and medals depend on which rows are in the test set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from grading.medals import Thresholds, above_median, medal_for
from grading.report import SCORE_DECIMALS
from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import SERIES

PROBABILITIES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median")
LUCK = (0.05, 0.95)
"""Between these probabilities, a medal depends on the choice of test rows."""


def split_noise(
    score: float, halves: Sequence[float], units: int, drawn: int, thresholds: Thresholds
) -> dict[str, float]:
    """Standard error of a score, and the probability of each medal on another test set of the same size.

    The mean of `drawn` of n units, drawn without replacement, varies with variance s^2 (n - drawn) / (drawn n), that of
    all n with s^2 / n. Deviations from the mean of `halves` are therefore multiplied by sqrt(drawn / (n - drawn)), and
    added to the score: the delete-d jackknife of Shao and Wu 1989. The result is exact for scores that are means of
    units, and a first-order approximation for other smooth ones. Thresholds are taken as known.

    Args:
        score: the score on all units.
        halves: finite scores on random halves.
        units: n, the number of units.
        drawn: units in a half.
        thresholds: what medals need.
    """
    if len(halves) < 2 or not 0 < drawn < units:
        return {"standard_error": math.nan, **{f"{name}_probability": math.nan for name in PROBABILITIES}}
    centre, stretch = mean(halves), math.sqrt(drawn / (units - drawn))
    others = [round(float(score + stretch * (half - centre)), SCORE_DECIMALS) for half in halves]
    medals = [medal_for(other, thresholds) for other in others]
    hits = {
        "any_medal": sum(medal is not None for medal in medals),
        **{f"{name}_medal": medals.count(name) for name in ("gold", "silver", "bronze")},
        "above_median": sum(above_median(other, thresholds) for other in others),
    }
    # Unlike that of a mean, the standard deviation of the scores themselves.
    spread = standard_error(halves) * math.sqrt(len(halves)) * stretch
    return {"standard_error": spread, **{f"{name}_probability": hits[name] / len(halves) for name in PROBABILITIES}}


def medals_by_luck(noise: pd.DataFrame) -> pd.DataFrame:
    """One row per series: how many runs are known, and how much of the medals is due to the choice of test rows.

    Columns besides the series: `runs`, `known` (with a standard error), `medals` (expected number of medals among the
    known), `sem` (standard error of the share of medals among the known that the choice of test rows alone causes; the
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
