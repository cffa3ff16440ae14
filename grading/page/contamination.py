"""The page's section on contamination: results by known leaks, by dates of competitions and cutoffs, and obfuscated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from common.months import end_of
from grading.page.charts import Line, draw, scale, steps
from grading.page.format import DASH, chance, percent, signed, signed_span
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.contamination import (
    around_cutoff,
    between_cutoffs,
    by_competition,
    by_date,
    dated,
    plain_and_obfuscated,
)
from grading.statistics.correlation import MIN_COMPETITIONS
from grading.statistics.leakage import leaky_against_others
from grading.statistics.seeds import mean

WORDS = {"any_medal": "Any medal", "percentile": "Human percentile"}


@dataclass(frozen=True)
class Contamination:
    """Rows of texts for each table, and the chart, which is None without human leaderboards."""

    leaks: list[tuple[Series, list[str]]]
    dates: list[tuple[Series, list[str]]]
    cutoffs: list[tuple[Series, list[str]]]
    models: list[list[str]]
    """Each two models with different cutoffs."""
    pairs: list[list[str]]
    chart: Markup | None
    has_cutoffs: bool
    """Whether the chart has a line at the cutoff of a model."""


def contamination_section(view: View, results: Results) -> Contamination | None:
    """The section; None if no series has leaky or enough dated competitions, a cutoff or an obfuscated counterpart."""
    grades, runs = results.grades, results.runs
    every = by_competition(grades, runs, results.counting, results.percentiles)
    competitions = dated(every, results.ended)
    leaks = [
        (view.series_of(row), [WORDS[row["measure"]], *_sides(row, ("leaky", "others")), *_test(row)])
        for row in leaky_against_others(every, results.leaking).to_dict("records")
    ]
    dates = [
        (view.series_of(row), [WORDS[row["measure"]], str(row["n"]), *_correlation(row)])
        for row in by_date(competitions).to_dict("records")
        if row["n"] >= MIN_COMPETITIONS
    ]
    cutoffs = [
        (
            view.series_of(row),
            [clean(row["cutoff"]), WORDS[row["measure"]], *_sides(row, ("before", "after")), *_test(row)],
        )
        for row in around_cutoff(competitions, results.cutoffs).to_dict("records")
    ]
    models = [_models(view, row) for row in between_cutoffs(competitions, results.cutoffs).to_dict("records")]
    compared = plain_and_obfuscated(grades, runs, results.percentiles, results.counting)
    pairs = [_pair(row) for row in compared.to_dict("records")]
    if not (leaks or dates or cutoffs or pairs):
        return None
    drawn = _by_year(view, results, competitions)
    return Contamination(leaks, dates, cutoffs, models, pairs, *(drawn or (None, False)))


def _correlation(row: Mapping[Any, Any]) -> list[str]:
    return [
        signed(row["spearman"]),
        signed_span(row["spearman_low"], row["spearman_high"]),
        chance(row["p_corrected"]),
    ]


def _sides(row: Mapping[Any, Any], sides: tuple[str, str]) -> list[str]:
    """The means of both sides, each with its number of competitions."""
    return [f"{percent(row[f'mean_{side}'])} ({row[side]})" if row[side] else DASH for side in sides]


def _test(row: Mapping[Any, Any]) -> list[str]:
    return [signed(100 * row["difference"], 1), _interval(row), chance(row["p_corrected"])]


def _models(view: View, row: Mapping[Any, Any]) -> list[str]:
    """Both models with their cutoffs, and the differences of their results: later minus earlier."""
    names = [
        f"{view.series_of({**row, **{n: row[f'{n}_{which}'] for n in ('run_group', 'agent')}}).label} "
        f"({clean(row[f'cutoff_{which}'])})"
        for which in ("late", "early")
    ]
    means = [f"{signed(100 * row[f'mean_{side}'], 1)} ({row[side]})" for side in ("between", "others")]
    return [*names, WORDS[row["measure"]], *means, *_test(row)]


def _pair(row: Mapping[Any, Any]) -> list[str]:
    groups = f"{clean(row['plain'])} against {clean(row['obfuscated'])}"
    who = [clean(row["agent"]), groups, clean(row["split"])]
    means = [percent(row["mean_plain"]), percent(row["mean_obfuscated"])]
    return [*who, WORDS[row["measure"]], str(row["competitions"]), *means, *_test(row), percent(row["smallest"])]


def _by_year(view: View, results: Results, competitions: pd.DataFrame) -> tuple[Markup, bool] | None:
    """The chart of the mean human percentile by the year in which competitions ended, and whether it has cutoffs.

    None with one year only.
    """
    known = competitions[competitions["percentile"].notna()].assign(year=lambda rows: rows["ended"].str[:4].astype(int))
    if known["year"].nunique() < 2:
        return None
    years = list(range(known["year"].min(), known["year"].max() + 1))
    lines = []
    for row in known[["run_group", "agent", "edition"]].drop_duplicates().to_dict("records"):
        own = known[(known[list(row)] == list(row.values())).all(axis=1)]
        points = [
            (float(str(year)), mean([float(each) for each in part["percentile"]])) for year, part in own.groupby("year")
        ]
        cutoff = results.cutoffs.get((row["run_group"], row["agent"]))
        # A year is drawn at its middle.
        at = math.nan if cutoff is None else end_of(cutoff) - 0.5
        lines.append(Line(view.series_of(row), sorted(points), marked=[at] if years[0] <= at <= years[-1] else []))
    label = "mean human percentile by the year in which competitions ended"
    x, y = steps(years, "{:.0f}".format, log=False), scale(1.0, lambda value: f"{100 * value:g} %")
    return draw(lines, x, y, label, "by-year"), any(line.marked for line in lines)


def _interval(row: Mapping[Any, Any]) -> str:
    return signed_span(100 * row["ci_low"], 100 * row["ci_high"], 1)
