"""The published row of each series, ready to paste, with the conditions that a reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from common.cleaning import clean
from common.markdown import Markdown, escape, table
from common.units import counted
from grading.conditions import deviations, switched_on, unlike, unlike_grades, unlike_values, with_values
from grading.page.format import DASH, duration
from grading.page.order import repeated_by_all
from grading.page.results import Results
from grading.page.sections import covered
from grading.page.view import Series, View
from grading.statistics.counting import cells_of
from grading.statistics.experiment import experiment, ungraded
from grading.statistics.leakage import leaks_found
from grading.statistics.series import BENCHMARK_SPLITS, SERIES, by_series, runs_of

HEADER = ["Agent", "LLMs", "Low", "Medium", "High", "All", "Hours", "Date", "Known leakage", "Leaky competitions"]
"""The columns of the published table, and how many of the competitions have known leaks."""


@dataclass(frozen=True)
class PublishedRows:
    """One row of cells per series, what deviates from the published conditions, and where series are unlike.

    `covers` says of series over which competitions their rates are, where they are not all.
    """

    rows: list[tuple[Series, list[str]]]
    deviations: list[tuple[Series, list[str]]]
    unlike: list[str]
    covers: list[tuple[Series, str]]
    stated: list[str]
    """`unlike`, with the values of the series where they are few."""
    switched_on: list[str]

    def markdown(self) -> str:
        """The rows as a table in Markdown. Footnotes mark unlike conditions, and name the competitions of a rate."""
        mark = " [^1]" if self.unlike else ""
        notes = {series: f"[^{number}]" for number, series in enumerate(dict(self.covers), start=2)}
        cells = []
        for series, (agent, models, *figures) in self.rows:
            marks = Markdown(f"{mark} {notes[series]}" if series in notes else mark)
            cells.append([Markdown("{}{}").format(agent, marks), models, *map(Markdown, figures)])
        lines: list[str] = [*table(HEADER, cells)]
        if self.unlike:
            lines += ["", f"[^1]: Not ranked: the conditions differ in {escape(', '.join(self.unlike))}."]
        for series, marked in notes.items():
            texts = "; ".join(text for each, text in self.covers if each == series)
            lines += ["", f"{marked}: Not all competitions: {escape(texts)}."]
        return "\n".join(map(str, lines))


def published_rows(view: View, results: Results) -> PublishedRows:
    """The rows of all series, in the order of the published table.

    Rates follow the published rule, whatever the other figures count: see `grading.statistics.experiment`.
    """
    splits, covers = _splits(view, results), covered(view, results, results.aggregate())
    models = _models(results)
    rows, away, ran = [], [], set()
    runs_by_label: dict[str, pd.DataFrame] = {}
    counts: dict[str, dict[str, int]] = {}
    for series in view.series:
        runs = runs_by_label[series.label] = _runs_of(series, results.runs)
        found = splits.get(series.index, {})
        sizes = {**results.split_sizes, "all": sum(results.split_sizes.get(name, 0) for name in BENCHMARK_SPLITS)}
        cells = [_rate(found.get(split), sizes.get(split, 0)) for split in BENCHMARK_SPLITS]
        cells.append(DASH if repeated_by_all(list(found)) else _rate(found.get("all"), sizes["all"]))
        leaking = results.leaking.get(series.edition, ())
        own = {c.id for c in view.competitions if any(key[0] == series.index for key in c.results)}
        ran.add(frozenset(own))
        leaks = f"{len(own & set(leaking))} of {counted(len(own), 'competition')}" if own & set(leaking) else "none"
        called = models.get((series.run_group, series.agent), DASH)
        facts = [_hours(runs), _date(runs), _leakage(series, results), leaks]
        rows.append((series, [series.label, called, *cells, *facts]))
        seeds = {split: each["num_seeds"] for split, each in found.items() if split != "all"}
        counts[series.label] = seeds
        covers_of_series = [text for each, text in covers if each == series]
        failures = ungraded(found)
        padded = [f"counted as failures: {counted(failures, 'run')} without a grade"] * (failures > 0)
        own_deviations = deviations(runs, min(seeds.values(), default=0), series.edition)
        away.append((series, covers_of_series + own_deviations + padded))
    different = unlike(list(runs_by_label.values()))
    different += unlike_grades([part for _, part in by_series(results.grades)] if len(results.grades) else [])
    different += ["competitions"] * (len(ran) > 1)
    values = unlike_values(runs_by_label)
    stated = [with_values(words, values.get(words, {})) for words in different]
    if len(ran) == 1 and any(seeds != next(iter(counts.values())) for seeds in counts.values()):
        different.append("number of counted seeds")
        numbers = {label: ", ".join(map(str, sorted(set(seeds.values())))) for label, seeds in counts.items()}
        stated.append(with_values(different[-1], numbers))
    return PublishedRows(rows, away, different, covers, stated, switched_on(runs_by_label))


def _splits(view: View, results: Results) -> dict[int, dict[str, Any]]:
    """By index of a series: the figures of each split by the published rule, over the competitions that count."""
    if results.grades.empty:
        return {}
    names: dict[int, dict[str, list[str]]] = {}
    for cells in cells_of(results.grades, results.runs, results.counting):
        names.setdefault(view.series_of(cells.series).index, {})[cells.split] = cells.competitions
    found = {}
    for key, grades in by_series(results.grades):
        series = view.series_of(key)
        found[series.index] = experiment(grades, [key["run_group"]], names.get(series.index, {}))["splits"]
    return found


def _runs_of(series: Series, runs: pd.DataFrame | None) -> pd.DataFrame:
    found = runs_of({name: getattr(series, name) for name in SERIES}, runs)
    return pd.DataFrame() if found is None else found


def _rate(split: Mapping[str, Any] | None, full: int) -> str:
    """Mean ± SEM in percent with two decimals, as published, and what it covers if it is not the whole split."""
    if split is None or split["any_medal"]["mean"] is None:
        return DASH
    rate, competitions = split["any_medal"], split["competitions"]
    error = "n/a" if rate["sem"] is None else f"{rate['sem']:.2f}"
    cover = f" ({competitions} of {full})" if competitions < full else ""
    return f"{rate['mean']:.2f} ± {error}{cover}"


def _leakage(series: Series, results: Results) -> str:
    """Whether the agent used leaks, as far as the integrity checks of its group found."""
    examinations, violations = (results.examined.get(name) for name in ("examinations", "violations"))
    leaks = leaks_found(examinations, violations, series.run_group, series.agent)
    if leaks is None:
        return "not examined"
    return f"found in {counted(leaks['run_id'].nunique(), 'run')}" if len(leaks) else "none found"


def _models(results: Results) -> dict[tuple[str, str], str]:
    """(run group, agent) -> the models that its runs called."""
    usage, runs = results.usage, results.runs
    if usage is None or usage.empty or runs is None or runs.empty:
        return {}
    called = usage[["run_group", "run_id", "model"]].dropna().drop_duplicates()
    calls = runs[["run_group", "run_id", "agent"]].drop_duplicates().merge(called, on=["run_group", "run_id"])
    models_of: dict[tuple[str, str], set[str]] = {}
    for group, agent, model in zip(calls["run_group"], calls["agent"], calls["model"], strict=True):
        models_of.setdefault((group, agent), set()).add(clean(model))
    return {key: ", ".join(sorted(models)) for key, models in models_of.items()}


def _hours(runs: pd.DataFrame) -> str:
    if "time_limit_seconds" not in runs:
        return DASH
    limits = sorted(float(limit) for limit in runs["time_limit_seconds"].dropna().unique())
    # The published column has whole hours.
    return ", ".join(f"{limit / 3600:g}" if limit % 3600 == 0 else duration(limit) for limit in limits) or DASH


def _date(runs: pd.DataFrame) -> str:
    if "finished_at" not in runs:
        return DASH
    moments = pd.to_datetime(runs["finished_at"], utc=True, format="ISO8601").dropna()
    return f"{moments.max():%Y-%m-%d}" if len(moments) else DASH
