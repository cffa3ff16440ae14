"""The page's section of scores against what they cost, in dollars and in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from grading.page.attempts import money
from grading.page.format import duration
from grading.page.results import Results
from grading.page.scatter import Point, scatter
from grading.page.view import View
from grading.statistics.counting import cells_of
from grading.statistics.intervals import interval_over_runs
from grading.statistics.seeds import mean


@dataclass(frozen=True)
class Against:
    """A chart of scores against costs."""

    title: str
    chart: Markup


def efficiency(view: View, results: Results, usage: Mapping[int, Mapping[Any, Any]], split: str) -> list[Against]:
    """Any medal and the mean human percentile in `split` against dollars and against time per run, as far as known.

    Agents of which one is unknown are left out, and charts with fewer than two agents. `usage` has the totals of
    series.
    """
    costs = {index: float(row["cost_per_run"]) for index, row in usage.items()}
    times = {s.index: mean([r.duration for r in view.results if r.series == s and r.duration]) for s in view.series}
    known = [seconds for seconds in times.values() if math.isfinite(seconds)]
    unit = 3600.0 if known and max(known) - min(known) >= 3600 else 60.0  # so that the numbers of the axis are round
    scores: dict[str, dict[int, tuple[float, float, float]]] = {"Any medal": {}, "Mean human percentile": {}}
    for cells in cells_of(results.grades, results.runs, results.counting) if len(results.grades) else ():
        if cells.split != split:
            continue
        medals, shares = cells.outcomes("any_medal"), cells.percentiles(results.percentiles)
        for name, outcomes in zip(scores, (medals, shares), strict=True):
            if outcomes:
                ends = interval_over_runs(outcomes.values(), binary=outcomes is medals)
                of_series = mean([mean(runs) for runs in outcomes.values()]), ends.low, ends.high
                scores[name][view.series_of(cells.series).index] = of_series
    drawn = []
    for axis, amounts, show in (
        ("dollars", costs, money),
        ("time", {index: seconds / unit for index, seconds in times.items()}, lambda count: duration(unit * count)),
    ):
        for name, found in scores.items():
            chart = _chart(view, amounts, found, show, f"{name} against {axis} per run, {split}")
            drawn += [Against(f"{name} against {axis} per run", chart)] if chart else []
    return drawn


def _chart(
    view: View,
    amounts: Mapping[int, float],
    scores: Mapping[int, tuple[float, float, float]],
    show: Callable[[float], str],
    label: str,
) -> Markup | None:
    points = [
        Point(series, amounts[series.index], *scores[series.index])
        for series in view.series
        if series.index in scores and 0 < amounts.get(series.index, math.nan) < math.inf
    ]
    return scatter(points, show, label) if len(points) > 1 else None
