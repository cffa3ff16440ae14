"""The page's section on generalisation: agents' own validation scores against the test set, and what choices cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from grading.page.drawing import HEIGHT, WIDTH, chart, grid
from grading.page.format import duration
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.generalisation import by_run, generalisation, pairs, percentiles_over_time
from grading.statistics.over_time import moments

_LINE = Markup('<polyline class="line l{}{}" points="{}"><title>{}</title></polyline>')


@dataclass(frozen=True)
class Generalisation:
    """Rows by series, and the chart with its moments; None without human leaderboards."""

    rows: list[tuple[Series, Mapping[Any, Any]]]
    chart: Markup | None
    moments: list[str]
    drawn: list[Series]


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
    lines: list[Markup] = []
    drawn: list[Series] = []
    for row in curves[["run_group", "agent", "edition"]].drop_duplicates().to_dict("records"):
        series = view.series_of(row)
        drawn.append(series)
        mine = curves[(curves[["run_group", "agent", "edition"]] == list(row.values())).all(axis=1)]
        for name, words in (("test", "test set"), ("own", "own validation")):
            points = [
                (WIDTH * place / max(1, len(times) - 1), HEIGHT * (1 - share / 100))
                for place, share in enumerate(mine[name])
            ]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            title = f"{series.label}, {words}: {mine[name].iloc[-1]:.0f} % of the teams in the end"
            lines.append(_LINE.format(series.shape, " own" if name == "own" else "", path, title))
    label = "mean share of teams beaten over time, on own validation data and on the test set"
    return Generalisation(
        [(view.series_of(row), row) for row in totals.to_dict("records")],
        chart([*grid(), *lines], label, "rates-over-time") if lines else None,
        [duration(at) for at in times],
        drawn,
    )
