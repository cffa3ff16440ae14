"""Results on competitions with known leaks against those on the others of the same complexity."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.contamination import MEASURES, series_of
from grading.statistics.intervals import within_range
from grading.statistics.seeds import Interval, holm, mean
from grading.statistics.series import SERIES

_COLUMNS = [*SERIES, "measure", "leaky", "others", "mean_leaky", "mean_others"]
_COLUMNS += ["difference", "ci_low", "ci_high", "p_value", "p_corrected"]


@dataclass(frozen=True)
class Stratified:
    """A difference within strata, its interval, and the two-sided p-value of the hypothesis that it is 0.

    `chosen` and `others` are the numbers of values in the strata that have both kinds; only they count.
    """

    difference: float
    interval: Interval
    p_value: float
    chosen: int
    others: int


def stratified_difference(
    values: Sequence[float], chosen: Sequence[bool], strata: Sequence[str], level: float = 0.95
) -> Stratified:
    """The mean difference of the chosen values, each 0 to 1, from the others of their stratum.

    Strata are weighted by n m / (n + m), for n chosen values and m others: it is the coefficient of "chosen" in a
    linear regression with a constant for each stratum, with its t interval (Cochran 1954, Some methods for
    strengthening the common chi-squared tests). Interval and p-value are NaN if fewer than two values are on a side, if
    no degree of freedom is left, and if all values of a stratum and side agree.
    """
    parts: dict[str, tuple[list[float], list[float]]] = {}
    for value, is_chosen, stratum in zip(values, chosen, strata, strict=True):
        parts.setdefault(stratum, ([], []))[0 if is_chosen else 1].append(value)
    both = [(yes, no) for yes, no in parts.values() if yes and no]
    ones, zeros = sum(len(yes) for yes, _ in both), sum(len(no) for _, no in both)
    weights = [len(yes) * len(no) / (len(yes) + len(no)) for yes, no in both]
    total = math.fsum(weights)
    if not total:
        return Stratified(math.nan, Interval(math.nan, math.nan), math.nan, ones, zeros)
    difference = math.fsum(w * (mean(yes) - mean(no)) for w, (yes, no) in zip(weights, both, strict=True)) / total
    squares = 0.0
    for yes, no in both:
        centre, share = mean([*yes, *no]), len(yes) / (len(yes) + len(no))
        squares += math.fsum((value - centre - difference * (1 - share)) ** 2 for value in yes)
        squares += math.fsum((value - centre + difference * share) ** 2 for value in no)
    degrees = ones + zeros - len(both) - 1
    if degrees < 1 or min(ones, zeros) < 2 or squares < 1e-20:
        return Stratified(difference, Interval(math.nan, math.nan), math.nan, ones, zeros)
    from scipy.special import stdtr, stdtrit

    error = math.sqrt(squares / degrees / total)
    reach = float(stdtrit(degrees, (1 + level) / 2)) * error
    interval = within_range(Interval(difference - reach, difference + reach))
    return Stratified(difference, interval, float(2 * stdtr(degrees, -abs(difference) / error)), ones, zeros)


def leaks_found(
    examinations: pd.DataFrame | None, violations: pd.DataFrame | None, run_group: str, agent: str
) -> pd.DataFrame | None:
    """The findings that runs of an agent used known leaks; None if the runs of the group were not examined for them."""
    if examinations is None or examinations.empty:
        return None
    if "violations" not in set(examinations[examinations["run_group"] == run_group]["stage"]):
        return None
    if violations is None or violations.empty:
        return pd.DataFrame(columns=["run_id", "competition_id"])
    own = (violations["run_group"] == run_group) & (violations["agent"] == agent)
    return violations[own & (violations["rule"] == "leak")]


def leaky_against_others(found: pd.DataFrame, leaking: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """One row per series and measure: competitions with known leaks minus the others, within complexity splits.

    Args:
        found: the table of `grading.statistics.contamination.by_competition`.
        leaking: edition -> the competitions with known leaks.
    """
    rows: list[dict[str, Any]] = []
    for series, part in series_of(found):
        for measure in MEASURES:
            known = part[part[measure].notna()]
            leaky = known["competition_id"].isin(list(leaking.get(series["edition"], ())))
            kinds = leaky.groupby(known["split"]).nunique()
            compared = known["split"].isin(list(kinds[kinds == 2].index))  # splits with both
            known, leaky = known[compared], leaky[compared]
            if known.empty:
                continue
            values = known[measure].astype(float)
            test = stratified_difference(values.tolist(), leaky.tolist(), known["split"].tolist())
            means = mean(values[leaky].tolist()), mean(values[~leaky].tolist())
            ends = {"ci_low": test.interval.low, "ci_high": test.interval.high, "p_value": test.p_value}
            counts = {"leaky": test.chosen, "others": test.others, "mean_leaky": means[0], "mean_others": means[1]}
            rows.append({**series, "measure": measure, **counts, "difference": test.difference, **ends})
    for row, corrected in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_corrected"] = corrected
    return pd.DataFrame(rows, columns=_COLUMNS)
