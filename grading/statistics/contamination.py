"""Contamination: scores against the dates of competitions and the cutoffs of models, and plain against obfuscated runs.

A model may have seen solutions of a competition that had ended before its training data were collected. Neither figure
proves that it did: newer competitions are also harder, and few of them are newer than the models of today.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from common.months import end_of
from grading.statistics.correlation import correlation
from grading.statistics.counting import EVERYTHING, Cells, Counting, cells_of
from grading.statistics.seeds import (
    holm,
    mean,
    paired_p_value,
    smallest_difference,
    standard_error,
    t_interval,
    welch,
)
from grading.statistics.series import SERIES

MEASURES = ("any_medal", "percentile")
_DATED = [*SERIES, "competition_id", "ended", *MEASURES]
_DATES = [*SERIES, "measure", "n", "pearson", "pearson_low", "pearson_high", "pearson_p"]
_DATES += ["spearman", "spearman_low", "spearman_high", "spearman_p"]
_CUTOFFS = [*SERIES, "cutoff", "measure", "before", "after", "mean_before", "mean_after"]
_CUTOFFS += ["difference", "ci_low", "ci_high", "p_value"]
_PAIRED = ["agent", "edition", "plain", "obfuscated", "split", "measure", "mean_plain", "mean_obfuscated"]
_PAIRED += ["difference", "ci_low", "ci_high", "p_value", "p_corrected", "smallest", "competitions"]


def dated(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None,
    counting: Counting,
    ended: Mapping[str, str | None],
    percentiles: Mapping[str, Sequence[float]],
) -> pd.DataFrame:
    """One row per series and competition whose end is known, over the seeds that count in its complexity split.

    `any_medal` is the share of seeds with a medal, `percentile` the mean share of teams beaten (0 to 1), in which a run
    without a score counts 0; NaN without a leaderboard.

    Args:
        grades: the graded submissions.
        runs: the table of runs.
        counting: how they are counted.
        ended: month (YYYY-MM) in which each competition ended.
        percentiles: 21 points of each leaderboard, see `grading.medals.human_percentile`.
    """
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting) if len(grades) else ():
        if cells.split == "all" or not cells.counted:  # its competitions have splits of their own
            continue
        for name in cells.counted:
            month = ended.get(name)
            if month is not None:
                figures = {measure: _value(cells, name, measure, percentiles) for measure in MEASURES}
                rows.append({**cells.series, "competition_id": name, "ended": month, **figures})
    return pd.DataFrame(rows, columns=_DATED)


def by_date(found: pd.DataFrame) -> pd.DataFrame:
    """Correlation of the results in `dated` with the month in which competitions ended, by series and measure."""
    rows = []
    for series, part in _by_series(found):
        months = [end_of(month) for month in part["ended"]]
        rows += [
            {**series, "measure": measure, **asdict(correlation(months, [float(each) for each in part[measure]]))}
            for measure in MEASURES
        ]
    return pd.DataFrame(rows, columns=_DATES)


def around_cutoff(found: pd.DataFrame, cutoffs: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Results in `dated` on competitions that ended up to a model's cutoff and after it, by series and measure.

    `difference` is the mean after minus the mean before, with Welch's 95 % interval and p-value over competitions; NaN
    with fewer than two competitions on a side.

    Args:
        found: the table `dated`.
        cutoffs: (run group, agent) -> month of the newest training data of the model.
    """
    rows: list[dict[str, Any]] = []
    for series, part in _by_series(found):
        cutoff = cutoffs.get((series["run_group"], series["agent"]))
        if cutoff is None:
            continue
        for measure in MEASURES:
            known = part[part[measure].notna()]
            sides = [known[known["ended"] <= cutoff], known[known["ended"] > cutoff]]
            before, after = ([float(value) for value in side[measure]] for side in sides)
            test = welch(before, after)
            figures = {"mean_before": mean(before), "mean_after": mean(after), "difference": test.difference}
            interval = {"ci_low": test.interval.low, "ci_high": test.interval.high, "p_value": test.p_value}
            counts = {"cutoff": cutoff, "measure": measure, "before": len(before), "after": len(after)}
            rows.append({**series, **counts, **figures, **interval})
    return pd.DataFrame(rows, columns=_CUTOFFS)


def plain_and_obfuscated(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None,
    percentiles: Mapping[str, Sequence[float]],
    counting: Counting = EVERYTHING,
) -> pd.DataFrame:
    """Each group of obfuscated runs beside each group of plain ones of the same agent and edition, by competition.

    One row per pair and measure, in the split with the most competitions that both count. `difference` is obfuscated
    minus plain, seeds of a competition averaged first; the p-value is that of the paired t-test,
    `p_corrected` for all rows (Holm), `smallest` the smallest true difference that the test would find in 80 % of
    repetitions. Groups with runs of both kinds are left out.
    """
    if runs is None or runs.empty or "obfuscated" not in runs or grades.empty:
        return pd.DataFrame(columns=_PAIRED)
    kinds = {
        (str(group), str(agent)): set(part["obfuscated"].eq(True))
        for (group, agent), part in runs.groupby(["run_group", "agent"])
    }
    found = [cells for cells in cells_of(grades, runs, counting) if cells.counted]

    def of_kind(hidden: bool) -> list[Cells]:
        return [c for c in found if kinds.get((c.series["run_group"], c.series["agent"])) == {hidden}]

    rows: list[dict[str, Any]] = []
    pairs: dict[tuple[str, ...], list[tuple[Cells, Cells]]] = {}
    for plain in of_kind(False):
        for other in of_kind(True):
            one, two = plain.series, other.series
            same = all(one[name] == two[name] for name in ("agent", "edition")) and plain.split == other.split
            if same and _common(plain, other):
                key = one["agent"], one["edition"], one["run_group"], two["run_group"]
                pairs.setdefault(key, []).append((plain, other))
    for (agent, edition, group, hidden), candidates in sorted(pairs.items()):
        chosen = max(candidates, key=lambda pair: (_common(*pair), pair[0].split == "all"))
        who = {"agent": agent, "edition": edition, "plain": group, "obfuscated": hidden, "split": chosen[0].split}
        rows += ({**who, "measure": measure, **_paired(*chosen, measure, percentiles)} for measure in MEASURES)
    for row, corrected in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_corrected"] = corrected
    return pd.DataFrame(rows, columns=_PAIRED)


def _common(a: Cells, b: Cells) -> int:
    return len(a.counted.keys() & b.counted.keys())


def _paired(plain: Cells, other: Cells, measure: str, percentiles: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    names = sorted(plain.counted.keys() & other.counted.keys())
    values = [[_value(cells, name, measure, percentiles) for cells in (plain, other)] for name in names]
    values = [pair for pair in values if not any(map(math.isnan, pair))]
    steps = [b - a for a, b in values]
    interval = t_interval(steps)
    return {
        "mean_plain": mean([a for a, _ in values]),
        "mean_obfuscated": mean([b for _, b in values]),
        "difference": mean(steps),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "p_value": paired_p_value(steps),
        "smallest": smallest_difference(standard_error(steps), len(steps) - 1),
        "competitions": len(steps),
    }


def _value(cells: Cells, name: str, measure: str, percentiles: Mapping[str, Sequence[float]]) -> float:
    """The mean of a measure over the counted seeds of a competition, 0 to 1."""
    if measure == "any_medal":
        return mean(cells.outcomes("any_medal")[name])
    return mean(cells.percentiles(percentiles).get(name, []))


def _by_series(found: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    for key, part in found.groupby(SERIES, sort=True) if len(found) else ():
        yield dict(zip(SERIES, map(str, key), strict=True)), part
