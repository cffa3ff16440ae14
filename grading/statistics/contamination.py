"""Contamination: scores against the dates of competitions and the cutoffs of models, and plain against obfuscated runs.

A model may have seen solutions of a competition that had ended before its training data were collected. Neither figure
proves that it did: newer competitions are also harder, and few of them are newer than the models of today.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from common.months import end_of
from grading.conditions import SWITCHES, used
from grading.statistics.correlation import correlation
from grading.statistics.counting import EVERYTHING, Cells, Counting, cells_of
from grading.statistics.differences import MIN_COMPETITIONS, paired
from grading.statistics.intervals import UNKNOWN, within_range
from grading.statistics.seeds import Welch, holm, mean, welch
from grading.statistics.series import SERIES

MEASURES = ("any_medal", "percentile")
_COMPETITIONS = [*SERIES, "competition_id", "split", *MEASURES]
_DATES = [*SERIES, "measure", "n", "pearson", "pearson_low", "pearson_high", "pearson_p"]
_DATES += ["spearman", "spearman_low", "spearman_high", "spearman_p", "p_corrected"]
_CUTOFFS = [*SERIES, "cutoff", "measure", "before", "after", "mean_before", "mean_after"]
_TEST = ["difference", "ci_low", "ci_high", "p_value", "p_corrected"]
_CUTOFFS += _TEST
_MODELS = ["edition", *(f"{name}_{which}" for which in ("early", "late") for name in ("run_group", "agent", "cutoff"))]
_MODELS += ["measure", "between", "others", "mean_between", "mean_others", *_TEST]
_PAIRED = ["agent", "edition", "plain", "obfuscated", "split", "measure", "mean_plain", "mean_obfuscated"]
_PAIRED += ["difference", "ci_low", "ci_high", "p_value", "p_corrected", "smallest", "competitions"]


def by_competition(
    grades: pd.DataFrame, runs: pd.DataFrame | None, counting: Counting, percentiles: Mapping[str, Sequence[float]]
) -> pd.DataFrame:
    """One row per series and competition, over the seeds that count in its complexity split.

    `any_medal` is the share of seeds with a medal, `percentile` the mean share of teams beaten (0 to 1), in which a run
    without a score counts 0; NaN without a leaderboard.

    Args:
        grades: the graded submissions.
        runs: the table of runs.
        counting: how they are counted.
        percentiles: 21 points of each leaderboard, see `grading.medals.human_percentile`.
    """
    rows: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting) if len(grades) else ():
        if cells.split == "all" or not cells.counted:  # its competitions have splits of their own
            continue
        for name in cells.counted:
            figures = {measure: _value(cells, name, measure, percentiles) for measure in MEASURES}
            rows.append({**cells.series, "competition_id": name, "split": cells.split, **figures})
    return pd.DataFrame(rows, columns=_COMPETITIONS)


def dated(found: pd.DataFrame, ended: Mapping[str, str | None]) -> pd.DataFrame:
    """The rows of `by_competition` whose competition's end is known, with its month (YYYY-MM) as `ended`."""
    known = found[found["competition_id"].map(ended).notna()].reset_index(drop=True)
    return known.assign(ended=pd.Series([str(ended[name]) for name in known["competition_id"]], dtype=object))


def by_date(found: pd.DataFrame) -> pd.DataFrame:
    """Correlation of the results in `dated` with the month in which competitions ended, by series and measure.

    `p_corrected` is Spearman's p-value, corrected for all rows (Holm).
    """
    rows: list[dict[str, Any]] = []
    for series, part in series_of(found):
        months = [end_of(month) for month in part["ended"]]
        rows += [
            {**series, "measure": measure, **asdict(correlation(months, [float(each) for each in part[measure]]))}
            for measure in MEASURES
        ]
    return pd.DataFrame(_corrected(rows, "spearman_p"), columns=_DATES)


def around_cutoff(found: pd.DataFrame, cutoffs: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Results in `dated` on competitions that ended up to a model's cutoff and after it, by series and measure.

    `difference` is the mean after minus the mean before, with Welch's 95 % interval and p-value over competitions; NaN
    with fewer than `MIN_COMPETITIONS` on a side. `p_corrected` is corrected for all rows (Holm). Newer competitions may
    be harder: where two models have different cutoffs, `between_cutoffs` does without that.

    Args:
        found: the table `dated`.
        cutoffs: (run group, agent) -> month of the newest training data of the model.
    """
    rows: list[dict[str, Any]] = []
    for series, part in series_of(found):
        cutoff = cutoffs.get((series["run_group"], series["agent"]))
        if cutoff is None:
            continue
        for measure in MEASURES:
            known = part[part[measure].notna()]
            sides = [known[known["ended"] <= cutoff], known[known["ended"] > cutoff]]
            before, after = ([float(value) for value in side[measure]] for side in sides)
            test = _welch(before, after)
            figures = {"mean_before": mean(before), "mean_after": mean(after), "difference": test.difference}
            ends = within_range(test.interval)
            interval = {"ci_low": ends.low, "ci_high": ends.high, "p_value": test.p_value}
            counts = {"cutoff": cutoff, "measure": measure, "before": len(before), "after": len(after)}
            rows.append({**series, **counts, **figures, **interval})
    return pd.DataFrame(_corrected(rows), columns=_CUTOFFS)


def between_cutoffs(found: pd.DataFrame, cutoffs: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Difference in differences of each two series whose models have different cutoffs, by measure.

    On each competition, the result of the later model minus that of the earlier one: how hard it is cancels. The mean
    of these on competitions that ended between both cutoffs, which only the later model can have seen, minus the mean
    on the others, which both or none can have seen, with Welch's interval and p-value over competitions; NaN with fewer
    than `MIN_COMPETITIONS` on a side. Pairs without a competition on a side are left out.

    Args:
        found: the table `dated`.
        cutoffs: (run group, agent) -> month of the newest training data of the model.
    """
    parts = [
        (cutoff, series, part.set_index("competition_id"))
        for series, part in series_of(found)
        if (cutoff := cutoffs.get((series["run_group"], series["agent"]))) is not None
    ]
    rows: list[dict[str, Any]] = []
    for (early, one, a), (late, two, b) in itertools.permutations(parts, 2):
        if early >= late or one["edition"] != two["edition"]:
            continue
        who = {"edition": one["edition"], "cutoff_early": early, "cutoff_late": late}
        who |= {f"{n}_{which}": each[n] for which, each in (("early", one), ("late", two)) for n in SERIES[:2]}
        for measure in MEASURES:
            steps = (b[measure] - a[measure]).dropna().sort_index()
            inside = [early < str(a["ended"][name]) <= late for name in steps.index]
            between, others = (
                [float(v) for v, is_in in zip(steps, inside, strict=True) if is_in == side] for side in (1, 0)
            )
            if not (between and others):
                continue
            test = _welch(others, between)
            counts = {"between": len(between), "others": len(others)}
            means = {"mean_between": mean(between), "mean_others": mean(others), "difference": test.difference}
            ends = {"ci_low": test.interval.low, "ci_high": test.interval.high, "p_value": test.p_value}
            rows.append({**who, "measure": measure, **counts, **means, **ends})
    return pd.DataFrame(_corrected(rows), columns=_MODELS)


def _welch(a: Sequence[float], b: Sequence[float]) -> Welch:
    """Welch's test of the mean of `b` minus that of `a`; without interval and p-value if there are few on a side.

    Few shares of runs often agree by chance, and their standard error is then far too small: with two on a side, no
    contamination is taken for some in 12 to 29 % of cases instead of 5 %.
    """
    test = welch(a, b)
    return test if min(len(a), len(b)) >= MIN_COMPETITIONS else replace(test, interval=UNKNOWN, p_value=math.nan)


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
    repetitions. Groups with runs of both kinds are left out, and pairs of which one had the scorer or feedback.
    """
    if runs is None or runs.empty or "obfuscated" not in runs or grades.empty:
        return pd.DataFrame(columns=_PAIRED)
    kinds = {
        (str(group), str(agent)): set(part["obfuscated"].eq(True))
        for (group, agent), part in runs.groupby(["run_group", "agent"])
    }
    further = {
        key: [used(part, name) for name in SWITCHES if name != "obfuscated"]
        for key, part in runs.groupby(["run_group", "agent"])
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
            differ = further[one["run_group"], one["agent"]] != further[two["run_group"], two["agent"]]
            if same and not differ and _common(plain, other):
                key = one["agent"], one["edition"], one["run_group"], two["run_group"]
                pairs.setdefault(key, []).append((plain, other))
    for (agent, edition, group, hidden), candidates in sorted(pairs.items()):
        chosen = max(candidates, key=lambda pair: (_common(*pair), pair[0].split == "all"))
        who = {"agent": agent, "edition": edition, "plain": group, "obfuscated": hidden, "split": chosen[0].split}
        rows += ({**who, "measure": measure, **_paired(*chosen, measure, percentiles)} for measure in MEASURES)
    return pd.DataFrame(_corrected(rows), columns=_PAIRED)


def _common(a: Cells, b: Cells) -> int:
    return len(a.counted.keys() & b.counted.keys())


def _paired(plain: Cells, other: Cells, measure: str, percentiles: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    names = sorted(plain.counted.keys() & other.counted.keys())
    values = [[_value(cells, name, measure, percentiles) for cells in (plain, other)] for name in names]
    values = [pair for pair in values if not any(map(math.isnan, pair))]
    sides = [{str(place): [pair[side]] for place, pair in enumerate(values)} for side in (0, 1)]
    found = paired(sides[0], sides[1])
    return {
        "mean_plain": found.a,
        "mean_obfuscated": found.b,
        "difference": found.difference,
        "ci_low": found.like_these.interval.low,
        "ci_high": found.like_these.interval.high,
        "p_value": found.like_these.p_value,
        "smallest": found.like_these.smallest,
        "competitions": found.competitions,
    }


def _value(cells: Cells, name: str, measure: str, percentiles: Mapping[str, Sequence[float]]) -> float:
    """The mean of a measure over the counted seeds of a competition, 0 to 1."""
    if measure == "any_medal":
        return mean(cells.outcomes("any_medal")[name])
    return mean(cells.percentiles(percentiles).get(name, []))


def _corrected(rows: list[dict[str, Any]], p_value: str = "p_value") -> list[dict[str, Any]]:
    """The rows with p-values that are corrected for all of them (Holm)."""
    corrected = holm([row[p_value] for row in rows])
    return [{**row, "p_corrected": p} for row, p in zip(rows, corrected, strict=True)]


def series_of(found: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Each series of a table of competitions, with its rows."""
    for key, part in found.groupby(SERIES, sort=True) if len(found) else ():
        yield dict(zip(SERIES, map(str, key), strict=True)), part
