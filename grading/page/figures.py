"""Figures of rates: medals and human percentiles over time and dollars, validations, pass@k, and resources."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from grading.page.charts import Axis, Line, draw, scale, steps
from grading.page.format import duration
from grading.page.order import repeated_by_all
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.aggregate import Aggregate
from grading.statistics.validations import validation_counts

_COMPETITIONS = ", shaded: for other competitions like these"


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


@dataclass(frozen=True)
class Figure:
    """A chart with its title, and the split that it shows."""

    title: str
    split: str
    chart: Markup
    bands: str
    """What its bands are for, if not for other runs of these competitions."""


def figures(view: View, results: Results, aggregate: Aggregate) -> list[Figure]:
    """The figures for which there are data."""
    if results.grades.empty:
        return []
    drawn, curves = [], results.learning
    for axis, column, title in (
        ("seconds", "any_medal", "Any medal over time"),
        ("seconds", "percentile", "Mean human percentile over time"),
        ("dollars", "any_medal", "Any medal over dollars per run"),
        ("dollars", "percentile", "Mean human percentile over dollars per run"),
    ):
        part = curves[(curves["axis"] == axis) & curves[column].notna()]
        factor = 0.01 if column == "percentile" else 1.0
        ends = {f"ci_{end}": part[f"{column}_{end}"] * factor for end in ("low", "high")}
        show = duration if axis == "seconds" else _dollars
        drawn.append(_figure(view, part.assign(value=part[column] * factor, **ends), "at", title, show))
    if results.validations is not None:
        counts = validation_counts(results.grades, results.validations, results.runs, results.spent, results.counting)
        for axis, title, show in (
            ("seconds", "Validations per run over time", duration),
            ("dollars", "Validations per run over dollars", _dollars),
        ):
            part = counts[counts["axis"] == axis]
            drawn.append(_figure(view, part.assign(value=part["validations"]), "at", title, show, "{:g}".format))
    attempts = results.pass_at
    medals = attempts[(attempts["rate"] == "any_medal")].assign(value=lambda rows: rows["mean"])
    if len(medals) and medals["k"].max() > 1:
        drawn.append(_figure(view, medals, "k", "Any medal in k attempts", lambda k: f"k = {k:g}", bands=_COMPETITIONS))
    drawn.append(_resources(view, results, aggregate))
    return [each for each in drawn if each is not None]


def _figure(
    view: View,
    rows: pd.DataFrame,
    x: str,
    title: str,
    show: Callable[[float], str],
    show_value: Callable[[float], str] = _percent,
    bands: str = "",
) -> Figure | None:
    """A line per series over the values of `x`, in the split with the most competitions.

    None if there is nothing to see: one value of `x` only, or nothing above zero.
    """
    if rows.empty:
        return None
    splits = list(rows["split"].unique())
    if repeated_by_all(splits):
        splits.remove("all")
    split = "all" if "all" in splits else max(splits, key=lambda each: (rows["split"] == each).sum())
    rows = rows[rows["split"] == split].sort_values(x)
    values = sorted(float(each) for each in rows[x].unique())
    if len(values) < 2 or not (rows["value"] > 0).any():
        return None
    by_series: dict[int, list[dict[Any, Any]]] = {}
    for row in rows.to_dict("records"):
        by_series.setdefault(view.series_of(row).index, []).append(row)
    lines = [
        Line(
            view.series[index],
            [(float(row[x]), float(row["value"])) for row in own],
            [(float(row[x]), row["ci_low"], row["ci_high"]) for row in own if not math.isnan(row["ci_low"])],
        )
        for index, own in sorted(by_series.items())
    ]
    # Attempts are few and whole, and stand at equal distances.
    return _drawn(title, clean(split), steps(values, show, log=not bands), lines, show_value, bands)


def _dollars(value: float) -> str:
    """Dollars at an axis, with two significant digits below ten.

    >>> _dollars(0.1065), _dollars(3.41), _dollars(54.0)
    ('$0.11', '$3.4', '$54')
    """
    return f"${value:,.0f}" if value >= 10 else f"${float(f'{value:.2g}'):g}"


def _drawn(
    title: str,
    split: str,
    x: Axis,
    lines: Sequence[Line],
    show: Callable[[float], str] = _percent,
    bands: str = "",
) -> Figure:
    ends = [y for line in lines for _, y in line.points] + [high for line in lines for _, _, high in line.band]
    y = scale(max(ends), show, 1.0 if show is _percent else math.inf)
    words = f"{title}, {split}: {len(lines)} lines"
    return Figure(
        title,
        split,
        draw(lines, x, y, words, title.lower().replace(" ", "-")),
        bands if any(len(line.band) > 1 for line in lines) else "",
    )


def _resources(view: View, results: Results, aggregate: Aggregate) -> Figure | None:
    """Any medal by time limit and GPUs, a line for each agent that was run with several; None if none was."""
    by_agent: dict[str, dict[tuple[float, float], tuple[Series, dict[Any, Any]]]] = {}
    rates = aggregate.rates[(aggregate.rates["rate"] == "any_medal") & aggregate.rates["mean"].notna()]
    splits = list(rates["split"].unique())
    if results.runs is None or results.runs.empty or not splits:
        return None
    split = "all" if "all" in splits else splits[0]
    rate_of = {view.series_of(row).index: row for row in rates[rates["split"] == split].to_dict("records")}
    for series in view.series:
        own = results.runs[(results.runs["run_group"] == series.run_group) & (results.runs["agent"] == series.agent)]
        resources = _one(own, "time_limit_seconds"), _one(own, "gpus")
        if series.index in rate_of and resources[0] > 0:
            label = f"{series.agent} · {series.edition}{' · feedback' * series.feedback}"
            by_agent.setdefault(label, {})[resources] = (series, rate_of[series.index])
    scaled = {agent: points for agent, points in by_agent.items() if len(points) > 1}
    if not scaled:
        return None
    found = sorted({resources for points in scaled.values() for resources in points})
    # Steps, not amounts: hours and GPUs have no common axis.
    axis = Axis([(float(n), _named(*each)) for n, each in enumerate(found)], 0.0, float(len(found) - 1))
    lines = [
        Line(
            next(iter(points.values()))[0],
            sorted((float(found.index(at)), row["mean"]) for at, (_, row) in points.items()),
            sorted(
                (float(found.index(at)), row["ci_low"], row["ci_high"])
                for at, (_, row) in points.items()
                if not math.isnan(row["ci_low"])
            ),
            label=agent,
        )
        for agent, points in scaled.items()
    ]
    return _drawn("Any medal by resources", clean(split), axis, lines)


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
