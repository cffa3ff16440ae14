"""The page's section on contamination: results by known leaks, by dates of competitions and cutoffs, and obfuscated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from common.months import end_of
from grading.page.drawing import HEIGHT, WIDTH, chart, grid
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

_LINE = Markup('<polyline class="line l{}" points="{}"><title>{}</title></polyline>')
_DOT = Markup('<line class="dot l{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/>')
_CUTOFF = Markup('<line class="cutoff" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1:.0f}"><title>{2}</title></line>')
WORDS = {"any_medal": "Any medal", "percentile": "Teams beaten"}


@dataclass(frozen=True)
class Contamination:
    """Rows of texts for each table, and the chart with its years; None without human leaderboards."""

    leaks: list[tuple[Series, list[str]]]
    dates: list[tuple[Series, list[str]]]
    cutoffs: list[tuple[Series, list[str]]]
    models: list[list[str]]
    """Each two models with different cutoffs."""
    pairs: list[list[str]]
    chart: Markup | None
    years: list[int]
    drawn: list[Series]
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
    return Contamination(leaks, dates, cutoffs, models, pairs, *(drawn or (None, [], [], False)))


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


def _by_year(
    view: View, results: Results, competitions: pd.DataFrame
) -> tuple[Markup, list[int], list[Series], bool] | None:
    """Mean share of teams beaten, by the year in which competitions ended; None with one year only."""
    known = competitions[competitions["percentile"].notna()].assign(year=lambda rows: rows["ended"].str[:4].astype(int))
    if known["year"].nunique() < 2:
        return None
    years = list(range(known["year"].min(), known["year"].max() + 1))
    parts, labels, drawn, ends = grid(), [], [], []
    cutoffs = results.cutoffs

    def place(year: float) -> float:
        return WIDTH * (year - years[0]) / (len(years) - 1)

    for row in known[["run_group", "agent", "edition"]].drop_duplicates().to_dict("records"):
        series = view.series_of(row)
        own = known[(known[list(row)] == list(row.values())).all(axis=1)]
        means = {
            int(str(year)): mean([float(each) for each in part["percentile"]]) for year, part in own.groupby("year")
        }
        points = [(place(year), HEIGHT * (1 - value)) for year, value in sorted(means.items())]
        text = f"{series.label}: " + ", ".join(f"{percent(value, 0)} % {year}" for year, value in sorted(means.items()))
        parts.append(_LINE.format(series.shape, " ".join(f"{x:.1f},{y:.1f}" for x, y in points), text))
        parts += (_DOT.format(series.shape, x, y) for x, y in points)
        labels.append(text)
        drawn.append(series)
        cutoff = cutoffs.get((row["run_group"], row["agent"]))
        # A year is drawn at its middle.
        if cutoff is not None and years[0] <= (at := end_of(cutoff) - 0.5) <= years[-1]:
            ends.append(_CUTOFF.format(place(at), HEIGHT, f"{series.label}: cutoff {cutoff}"))
    label = "mean share of teams beaten by the year in which competitions ended: " + "; ".join(labels)
    return chart([*parts, *ends], label, "rates-over-time"), years, drawn, bool(ends)


def _interval(row: Mapping[Any, Any]) -> str:
    return signed_span(100 * row["ci_low"], 100 * row["ci_high"], 1)
