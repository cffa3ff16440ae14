"""Results over time from snapshots: medal rates of a group, and scores of one competition's runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from grading.page.drawing import chart
from grading.page.format import duration, number, percent
from grading.page.order import repeated_by_all
from grading.page.results import Results
from grading.page.scales import MEDAL_SCALE, score_axis
from grading.page.view import CompetitionView, Series, View
from grading.statistics.series import split_order

_BAND = Markup('<rect class="band {}" width="100%" y="{:.0f}" height="{:.0f}"/>')
_LINES = Markup('<path class="line l{}" data-line="{}" d="{}"{}')
_HEIGHT = Markup('<span style="bottom:{:.0f}%">{}</span>')
_AXES = Markup('<div class="timed"><div class="y">{}</div>{}<div class="x">{}</div></div>')
_WIDTH = 500
"""Of charts, whose height is 100."""
_APART = 13.0
"""Percent of the height that a label needs."""


@dataclass(frozen=True)
class TimeTable:
    """Any-medal rates over time: rows (series, split, one text per moment)."""

    moments: list[str]
    rows: list[tuple[Series, str, list[str]]]


def time_table(view: View, results: Results) -> TimeTable | None:
    """Medal rates over time; None without snapshots or medals."""
    if results.grades.empty:
        return None
    rates = results.learning[results.learning["axis"] == "seconds"]
    if repeated_by_all(list(rates["split"].unique())):
        rates = rates[rates["split"] != "all"]
    if not (rates["any_medal"] > 0).any():
        return None
    times = sorted(rates["at"].unique())
    cells: dict[tuple[int, str], dict[float, dict[Any, Any]]] = {}
    for row in rates.to_dict("records"):
        cells.setdefault((view.series_of(row).index, str(row["split"])), {})[row["at"]] = row
    keys = sorted(cells, key=lambda key: (key[0], split_order(key[1])))
    rows = [
        (
            view.series[index],
            clean(split),
            [percent(cells[index, split][t]["any_medal"]) for t in times],
        )
        for index, split in keys
    ]
    return TimeTable([duration(t) for t in times], rows)


Snapshots = Mapping[str, Sequence[tuple[Series, str, float, float]]]
"""By competition: series, run, seconds since its start, and score of each snapshot that has one, in order of time."""


def snapshots_of(view: View, snapshots: pd.DataFrame | None) -> Snapshots:
    """The snapshots of the runs in `view`. One without an edition belongs to any series of its run."""
    if snapshots is None or snapshots.empty:
        return {}
    runs: dict[tuple[str, str], dict[str, Series]] = {}
    for result in view.results:
        runs.setdefault((result.series.run_group, result.run_id), {})[result.series.edition] = result.series
    table = snapshots[snapshots["score"].notna()].sort_values("at_seconds", kind="stable")
    editions = table["edition"] if "edition" in table else pd.Series(None, index=table.index)
    columns = (table[name] for name in ("competition_id", "run_group", "run_id", "at_seconds", "score"))
    found: dict[str, list[tuple[Series, str, float, float]]] = {}
    for name, group, run, at, score, edition in zip(*columns, editions, strict=True):
        of_run = runs.get((clean(group), clean(run)), {})
        series = next(iter(of_run.values()), None) if pd.isna(edition) else of_run.get(clean(edition))
        if series is not None:
            found.setdefault(clean(name), []).append((series, str(run), float(at), float(score)))
    return found


def score_timeline(
    competition: CompetitionView, snapshots: Sequence[tuple[Series, str, float, float]], titles: bool = True
) -> Markup | None:
    """Chart of scores over time on the bands of the medals, with better scores at the top; None without snapshots.

    `snapshots` are those of the competition. Every series has a line for each of its runs. The time axis ends at the
    last snapshot of any run. Lines have tooltips with `titles`.
    """
    limits = competition.thresholds
    if not snapshots or limits is None:
        return None
    axis = score_axis(limits, [score for *_, score in snapshots if math.isfinite(score)])
    end = max(at for _, _, at, _ in snapshots) or 1.0
    at = {name: axis.at(getattr(limits, name)) for name in MEDAL_SCALE}
    edges = [0.0, *at.values(), 100.0]
    parts = [
        _BAND.format(name, 100 - high, high - low)
        for name, (low, high) in zip(("below", "above", "bronze", "silver", "gold"), pairwise(edges), strict=True)
        if high > low
    ]
    paths: dict[Series, dict[str, list[tuple[int, int]]]] = {}
    for series, run, seconds, score in snapshots:
        height = 100 - min(max(axis.at(score), 0.0), 100.0)
        paths.setdefault(series, {}).setdefault(run, []).append((round(_WIDTH * seconds / end), round(height)))
    for series, of_series in sorted(paths.items(), key=lambda each: each[0].index):
        path = "".join(map(_path, of_series.values()))
        title = Markup("><title>{}</title></path>").format(series.label) if titles else Markup("/>")
        parts.append(_LINES.format(series.shape, series.label, path, title))
    label = f"{competition.id}: scores over the first {duration(end)}"
    # Where two thresholds are near, the outer ones are named.
    named: dict[str, float] = {}
    for name in ("gold", "median", "silver", "bronze"):
        if all(abs(at[name] - other) > _APART for other in named.values()):
            named[name] = at[name]
    heights = Markup("").join(_HEIGHT.format(place, f"{n} {number(getattr(limits, n))}") for n, place in named.items())
    times = Markup("").join(Markup("<span>{}</span>").format(text) for text in ("0", duration(end / 2), duration(end)))
    return _AXES.format(heights, chart(parts, label, "timeline", _WIDTH, 100), times)


def _path(points: Sequence[tuple[int, int]]) -> str:
    """A line of steps, because a score holds until the next snapshot, as an attribute of SVG."""
    (x, y), *others = points
    parts = [f"M{x} {y}"]
    for after, height in others:
        if height != y:
            parts.append(f"h{after - x}v{height - y}")
            x, y = after, height
    return "".join(parts) + f"H{_WIDTH}"
