"""Figures of rates: learning curves over time and dollars, pass@k, and resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from grading.page.attempts import money
from grading.page.drawing import HEIGHT, WIDTH, chart, grid
from grading.page.format import duration
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.aggregate import Aggregate
from grading.statistics.learning import learning
from grading.statistics.validations import validation_counts

_LINE = Markup('<polyline class="line l{}" points="{}"><title>{}</title></polyline>')
_POINT = Markup('<line class="dot l{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"><title>{3}</title></line>')


@dataclass(frozen=True)
class _Scale:
    """The values that the upper edge of a chart may have, and how values are written: at the axis, and of points."""

    tops: tuple[float, ...]
    axis: Callable[[float], str]
    point: Callable[[float], str]


_SHARES = _Scale((0.1, 0.2, 0.25, 0.5, 1.0), lambda value: f"{100 * value:g} %", lambda value: f"{100 * value:.1f} %")
_NUMBERS = _Scale(tuple(step * 10**n for n in range(6) for step in (1, 2, 5)), "{:g}".format, "{:.3g}".format)


@dataclass(frozen=True)
class Figure:
    """A chart with the texts of its axes: `upper` at the upper edge, `middle` half way."""

    title: str
    split: str
    ticks: list[str]
    upper: str
    middle: str
    chart: Markup
    drawn: list[Series]


def figures(view: View, results: Results, aggregate: Aggregate) -> list[Figure]:
    """The figures for which there are data."""
    grades, snapshots = results.grades, results.snapshots
    if grades.empty:
        return []
    curves = learning(
        grades,
        grades.iloc[:0] if snapshots is None else snapshots,
        results.runs,
        results.usage,
        results.counting,
        results.percentiles,
    )
    drawn = []
    for axis, column, title in (
        ("seconds", "percentile", "Mean human percentile over time"),
        ("dollars", "any_medal", "Any medal over dollars per run"),
        ("dollars", "percentile", "Mean human percentile over dollars per run"),
    ):
        part = curves[(curves["axis"] == axis) & curves[column].notna()]
        scale = 0.01 if column == "percentile" else 1.0
        show = duration if axis == "seconds" else money
        drawn.append(_figure(view, part.assign(value=part[column] * scale), "at", title, show))
    if results.validations is not None:
        counts = validation_counts(grades, results.validations, results.runs, results.usage, results.counting)
        for axis, title, show in (
            ("seconds", "Validations per run over time", duration),
            ("dollars", "Validations per run over dollars", money),
        ):
            part = counts[counts["axis"] == axis]
            drawn.append(_figure(view, part.assign(value=part["validations"]), "at", title, show, _NUMBERS))
    attempts = results.pass_at
    medals = attempts[(attempts["rate"] == "any_medal")].assign(value=lambda rows: rows["mean"])
    if len(medals) and medals["k"].max() > 1:
        drawn.append(_figure(view, medals, "k", "Any medal in k attempts", lambda k: f"k = {k:g}"))
    drawn.append(_resources(view, results, aggregate))
    return [each for each in drawn if each is not None]


def _figure(
    view: View, rows: pd.DataFrame, x: str, title: str, show: Callable[[float], str], scale: _Scale = _SHARES
) -> Figure | None:
    """A line per series over the values of `x`, which are evenly spaced, in the split with the most competitions.

    None if there is nothing to see: one value of `x` only, or nothing above zero.
    """
    if rows.empty:
        return None
    splits = list(rows["split"].unique())
    split = "all" if "all" in splits else max(splits, key=lambda each: (rows["split"] == each).sum())
    rows = rows[rows["split"] == split]
    ticks = sorted(rows[x].unique())
    if len(ticks) < 2 or not (rows["value"] > 0).any():
        return None
    lines: dict[int, list[tuple[int, float]]] = {}
    for row in rows.to_dict("records"):
        lines.setdefault(view.series_of(row).index, []).append((ticks.index(row[x]), float(row["value"])))
    texts = [show(tick) for tick in ticks]
    named = {view.series[index]: sorted(points) for index, points in lines.items()}
    lines_of = [(series, series.label, points) for series, points in named.items()]
    return _drawn(title, clean(split), texts, lines_of, scale)


def _drawn(
    title: str,
    split: str,
    ticks: list[str],
    lines: Sequence[tuple[Series, str, Sequence[tuple[int, float]]]],
    scale: _Scale = _SHARES,
) -> Figure:
    most = max((value for _, _, points in lines for _, value in points), default=0.0)
    top = next((step for step in scale.tops if most <= step), most)
    parts = grid()
    for series, label, points in lines:
        places = [(WIDTH * x / max(1, len(ticks) - 1), HEIGHT * (1 - y / top)) for x, y in points]
        words = f"{label}: " + ", ".join(f"{scale.point(y)} at {ticks[x]}" for x, y in points)
        if len(places) > 1:
            parts.append(_LINE.format(series.shape, " ".join(f"{x:.1f},{y:.1f}" for x, y in places), words))
        parts += (_POINT.format(series.shape, x, y, words) for x, y in places)
    label = f"{title}, {split}: " + "; ".join(label for _, label, _ in lines)
    drawn = [series for series, _, _ in lines]
    return Figure(
        title, split, ticks, scale.axis(top), scale.axis(top / 2), chart(parts, label, "rates-over-time"), drawn
    )


def _resources(view: View, results: Results, aggregate: Aggregate) -> Figure | None:
    """Any medal by time limit and GPUs, a line for each agent that was run with several; None if none was."""
    by_agent: dict[str, dict[tuple[float, float], tuple[Series, float]]] = {}
    rates = aggregate.rates[(aggregate.rates["rate"] == "any_medal") & aggregate.rates["mean"].notna()]
    splits = list(rates["split"].unique())
    if results.runs is None or results.runs.empty or not splits:
        return None
    split = "all" if "all" in splits else splits[0]
    means = {view.series_of(row).index: float(row["mean"]) for row in rates[rates["split"] == split].to_dict("records")}
    for series in view.series:
        own = results.runs[(results.runs["run_group"] == series.run_group) & (results.runs["agent"] == series.agent)]
        resources = _one(own, "time_limit_seconds"), _one(own, "gpus")
        if series.index in means and resources[0] > 0:
            by_agent.setdefault(f"{series.agent} · {series.edition}", {})[resources] = (series, means[series.index])
    scaled = {agent: points for agent, points in by_agent.items() if len(points) > 1}
    if not scaled:
        return None
    ticks = sorted({resources for points in scaled.values() for resources in points})
    lines = [
        (next(iter(points.values()))[0], agent, sorted((ticks.index(at), value) for at, (_, value) in points.items()))
        for agent, points in scaled.items()
    ]
    return _drawn("Any medal by resources", clean(split), [_named(*each) for each in ticks], lines)


def _one(runs: pd.DataFrame, column: str) -> float:
    """The value that all runs have, or -1."""
    values = set(runs[column].dropna()) if column in runs else set()
    return float(next(iter(values))) if len(values) == 1 else -1.0


def _named(limit: float, gpus: float) -> str:
    """The resources in words.

    >>> _named(86400.0, 1.0), _named(360000.0, -1.0)
    ('24 h, 1 GPU', '100 h')
    """
    return duration(limit) + ("" if gpus < 0 else f", {gpus:g} GPU{'s' * (gpus != 1)}")
