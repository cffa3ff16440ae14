"""The page's section on feedback: public scores against private ones, and what the final choice of a file cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from grading.page.charts import Line, draw, scale, steps
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics import generalisation
from grading.statistics.public_scores import by_file, by_number, by_run, totals
from grading.statistics.series import SERIES

_MOST_FILES = 200
"""Rows of the table of files; the runs whose choice cost most are first."""
_NUMBERS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True)
class PublicScores:
    """Rows by series, the chart, and files by series, those of runs whose choice cost most first."""

    rows: list[tuple[Series, Mapping[Any, Any]]]
    chart: Markup | None
    """None without human leaderboards, or if no run has two files."""
    files: list[tuple[Series, Mapping[Any, Any]]]
    number: int
    """Of all files, of which `files` may be a part."""


def public_scores_section(view: View, results: Results) -> PublicScores | None:
    """The section; None without graded runs that have a public score."""
    submissions = results.public_scores
    if submissions is None or submissions.empty:
        return None
    files = by_file(results.grades, submissions, results.percentiles)
    runs = by_run(results.grades, files, results.percentiles)
    if runs.empty:
        return None
    own = _own_gaps(results)
    rows = [
        {**row, "own_gap": own.get(tuple(row[name] for name in SERIES))}
        for row in _records(totals(results.grades, runs))
    ]
    costs = runs.set_index(["run_group", "run_id", "edition"])["percentile_cost"]
    keys = pd.MultiIndex.from_frame(files[["run_group", "run_id", "edition"]])
    ordered = files.assign(cost=costs.reindex(keys).fillna(0.0).to_numpy())
    ordered = ordered.sort_values(
        ["cost", "competition_id", "run_group", "run_id", "submission"], ascending=[False, *[True] * 4]
    )
    shown: list[tuple[Series, Mapping[Any, Any]]] = [
        (view.series_of(row), row) for row in _records(ordered.head(_MOST_FILES))
    ]
    return PublicScores(view.in_order(rows), _chart(view, files), shown, len(files))


def _chart(view: View, files: pd.DataFrame) -> Markup | None:
    most = int(files.groupby(["run_group", "run_id"]).size().max())
    numbers = [*(n for n in _NUMBERS if n < most), most]
    curves = by_number(files, numbers)
    if curves.empty or most < 2:
        return None
    lines: list[Line] = []
    for key, part in curves.groupby(SERIES):
        series = view.series_of(dict(zip(SERIES, key, strict=True)))
        for name, kind in (("private", ""), ("public", "own")):
            points = [(float(n), float(share) / 100) for n, share in zip(part["number"], part[name], strict=True)]
            lines.append(Line(series, points, label=f"{series.label}, public part" if kind else "", kind=kind))
    label = "mean percentile among human teams of the best file so far, on the public and the private part"
    x, y = steps(list(map(float, numbers)), "{:g}".format), scale(1.0, lambda value: f"{100 * value:g} %", 1.0)
    return draw(sorted(lines, key=lambda line: line.series.index), x, y, label, "public-scores")


def _own_gaps(results: Results) -> dict[tuple[Any, ...], float]:
    """The gap of agents' own validation scores, by series, of runs that report any; see `generalisation`."""
    if results.own is None or results.own.empty:
        return {}
    taken = results.grades.iloc[:0] if results.snapshots is None else results.snapshots
    grades = results.grades[results.grades["feedback"].notna()]
    found = generalisation.by_run(grades, taken, results.own, results.percentiles)
    return {
        tuple(row[name] for name in SERIES): row["gap"]
        for row in _records(generalisation.generalisation(grades, found))
    }


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")
