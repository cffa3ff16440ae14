"""The page's section on generalisation: agents' own validation scores against the test set, and what choices cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from grading.page.charts import Line, draw, scale, steps
from grading.page.format import duration
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.generalisation import by_run, generalisation, pairs, percentiles_over_time
from grading.statistics.over_time import moments


@dataclass(frozen=True)
class Generalisation:
    """Rows by series, and the chart; None without human leaderboards."""

    rows: list[tuple[Series, Mapping[Any, Any]]]
    chart: Markup | None


def generalisation_section(view: View, results: Results) -> Generalisation | None:
    """The section; None if no agent reported its validation scores."""
    own, snapshots = results.own, results.snapshots
    if own is None or own.empty or results.grades.empty:
        return None
    taken = results.grades.iloc[:0] if snapshots is None else snapshots
    pairs_of_runs = pairs(results.grades, taken, own)
    totals = generalisation(results.grades, by_run(results.grades, taken, own, results.percentiles, pairs_of_runs))
    if totals.empty:
        return None
    times = moments(float(pairs_of_runs["at_seconds"].max())) if len(pairs_of_runs) else []
    curves = percentiles_over_time(pairs_of_runs, results.percentiles, times)
    lines: list[Line] = []
    for row in curves[["run_group", "agent", "edition"]].drop_duplicates().to_dict("records"):
        series = view.series_of(row)
        mine = curves[(curves[["run_group", "agent", "edition"]] == list(row.values())).all(axis=1)]
        for name, kind in (("test", ""), ("own", "own")):
            points = [(at, float(share) / 100) for at, share in zip(times, mine[name], strict=True)]
            lines.append(Line(series, points, label=f"{series.label}, own validation" if kind else "", kind=kind))
    label = "mean percentile among human teams over time, on own validation data and on the test set"
    most = max((y for line in lines for _, y in line.points), default=1.0)
    x, y = steps(times, duration), scale(most, lambda value: f"{100 * value:g} %", 1.0)
    figure = draw(lines, x, y, label, "own-validation") if lines else None
    return Generalisation(view.in_order(totals.to_dict("records")), figure)
