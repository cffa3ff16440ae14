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
from grading.page.drawing import HEIGHT, WIDTH, chart
from grading.page.format import duration, number, percent
from grading.page.order import repeated_by_all
from grading.page.results import Results
from grading.page.scales import score_axis
from grading.page.view import CompetitionView, Series, View
from grading.statistics.series import split_order


@dataclass(frozen=True)
class TimeTable:
    """Any-medal rates over time: rows (series, split, one text per moment)."""

    moments: list[str]
    rows: list[tuple[Series, str, list[str]]]


def time_table(view: View, results: Results) -> TimeTable | None:
    """Medal rates over time; None without snapshots."""
    if results.grades.empty:
        return None
    rates = results.learning[results.learning["axis"] == "seconds"]
    if repeated_by_all(list(rates["split"].unique())):
        rates = rates[rates["split"] != "all"]
    if rates.empty:
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


def by_competition(snapshots: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """The snapshots of each competition."""
    if snapshots is None or snapshots.empty:
        return {}
    return {str(name): part for name, part in snapshots.groupby(snapshots["competition_id"].map(clean))}


def score_timeline(
    competition: CompetitionView, snapshots: pd.DataFrame | None, runs: Mapping[tuple[str, str, str], Series]
) -> Markup | None:
    """Chart of scores over time on the bands of the medals, with better scores at the top; None without snapshots.

    `snapshots` are those of the competition.
    The time axis ends at the last snapshot of any run. The caption states this time.
    """
    thresholds = competition.thresholds
    if snapshots is None or snapshots.empty or thresholds is None:
        return None
    own = snapshots
    series = [_series_of(row, runs) for row in own.to_dict("records")]
    own = own.assign(series=[-1 if each is None else each.index for each in series])
    own = own[(own["series"] >= 0) & own["score"].notna()].sort_values("at_seconds")
    if own.empty:
        return None
    axis = score_axis(thresholds, [float(score) for score in own["score"] if math.isfinite(score)])
    end = float(own["at_seconds"].max()) or 1.0
    edges = [0.0, *(axis.at(getattr(thresholds, name)) for name in ("median", "bronze", "silver", "gold")), 100.0]
    parts = [
        Markup('<rect class="band {}" x="0" width="{:.0f}" y="{:.1f}" height="{:.1f}"/>').format(
            name, WIDTH, HEIGHT * (1 - high / 100), HEIGHT * (high - low) / 100
        )
        for name, low, high in zip(("below", "above", "bronze", "silver", "gold"), edges[:-1], edges[1:], strict=True)
        if high > low
    ]
    by_index = {each.index: each for each in runs.values()}
    for _, history in own.groupby(["run_group", "run_id", "series"], sort=True):
        points = [
            (WIDTH * at / end, min(max(axis.at(score) / 100, 0.0), 1.0))
            for at, score in zip(history["at_seconds"], history["score"], strict=True)
        ]
        points.append((WIDTH, points[-1][1]))
        parts.append(_line(by_index[int(history["series"].iloc[0])], points, steps=True))
    last = own.groupby(["run_group", "run_id", "series"])["score"].last()
    label = f"{competition.id}: scores over time, last {', '.join(number(float(score)) for score in last)}"
    caption = Markup('<p class="small soft timed">Score over the first {}, better is higher:</p>').format(duration(end))
    return caption + chart(parts, label, "timeline")


def _series_of(row: Mapping[Any, Any], runs: Mapping[tuple[str, str, str], Series]) -> Series | None:
    """The series of a snapshot. Without an edition it belongs to any series of its run."""
    run, edition = (clean(row["run_group"]), clean(row["run_id"])), row.get("edition")
    if edition is not None and not pd.isna(edition):
        return runs.get((*run, clean(edition)))
    return next((series for key, series in runs.items() if key[:2] == run), None)


def _line(series: Series, points: Sequence[tuple[float, float]], steps: bool = False) -> Markup:
    corners = [(x, HEIGHT * (1 - y)) for x, y in points]
    if steps:  # a score holds until the next snapshot
        corners = [
            corners[0],
            *((x, y) for (_, before), (x, now) in pairwise(corners) for y in (before, now)),
        ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return Markup('<polyline class="line l{}" points="{}"><title>{}</title></polyline>').format(
        series.shape, path, series.label
    )
