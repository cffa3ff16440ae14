"""The published row of each series, ready to paste, with the conditions that a reader must know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from common.cleaning import clean
from common.units import counted
from grading.conditions import deviations, unlike, unlike_grades
from grading.page.format import DASH
from grading.page.results import Results
from grading.page.sections import covered, rates_by_split
from grading.page.view import Series, View
from grading.statistics.series import BENCHMARK_SPLITS, by_series

HEADER = ["Agent", "LLMs", "Low", "Medium", "High", "All", "Hours", "Date", "Known leakage"]


@dataclass(frozen=True)
class PublishedRows:
    """One row of cells per series, what deviates from the published conditions, and where series are unlike.

    `covers` says of series over which competitions their rates are, where they are not all.
    """

    rows: list[tuple[Series, list[str]]]
    deviations: list[tuple[Series, list[str]]]
    unlike: list[str]
    covers: list[tuple[Series, str]]

    def markdown(self) -> str:
        """The rows as a table in Markdown. Footnotes mark unlike conditions, and name the competitions of a rate."""
        mark = " [^1]" if self.unlike else ""
        notes = {series: f"[^{number}]" for number, series in enumerate(dict(self.covers), start=2)}
        texts = [[cell.replace("|", "\\|") for cell in row] for _, row in self.rows]
        marks = [f"{mark} {notes[series]}" if series in notes else mark for series, _ in self.rows]
        cells = [[f"{row[0]}{marked}", *row[1:]] for row, marked in zip(texts, marks, strict=True)]
        lines = ["| " + " | ".join(each) + " |" for each in (HEADER, ["---"] * len(HEADER), *cells)]
        note = f"\n\n[^1]: Not ranked: the conditions differ in {', '.join(self.unlike)}." if self.unlike else ""
        for series, marked in notes.items():
            note += f"\n\n{marked}: Not all competitions: {'; '.join(text for s, text in self.covers if s == series)}."
        return "\n".join(lines) + note


def published_rows(view: View, results: Results) -> PublishedRows:
    """The rows of all series, in the order of the published table. Ungraded runs count as failures, as published."""
    aggregate = results.aggregate(incomplete="fail")
    rates, covers = rates_by_split(view, aggregate, results.split_sizes), covered(view, results, aggregate)
    models = _models(results)
    rows, away, ran = [], [], set()
    for series in view.series:
        runs = _of(series, results.runs)
        cells = [_rate(rates.get((series.index, split))) for split in (*BENCHMARK_SPLITS, "all")]
        leaking = results.leaking.get(series.edition, ())
        own = {c.id for c in view.competitions if any(key[0] == series.index for key in c.results)}
        ran.add(frozenset(own))
        leaks = f"{len(own & set(leaking))} of {counted(len(own), 'competition')}" if own & set(leaking) else "none"
        called = models.get((series.run_group, series.agent), DASH)
        rows.append((series, [series.label, called, *cells, _hours(runs), _date(runs), leaks]))
        seeds = min((row["seeds"] for (index, _), row in rates.items() if index == series.index), default=0)
        covers_of_series = [text for each, text in covers if each == series]
        ungraded = sum(
            row["missing"] for (index, split), row in rates.items() if (index, split) == (series.index, "all")
        )
        if ungraded:
            covers_of_series.append(f"{counted(ungraded, 'ungraded run')}: counted as failures, as published")
        away.append((series, covers_of_series + deviations(runs, seeds, series.edition)))
    different = unlike([_of(series, results.runs) for series in view.series])
    different += unlike_grades([part for _, part in by_series(results.grades)] if len(results.grades) else [])
    different += ["competitions"] * (len(ran) > 1)
    counts: dict[str, set[int]] = {}
    for (_, split), row in rates.items():
        counts.setdefault(split, set()).add(row["seeds"])
    different += ["number of counted seeds"] * any(len(seeds) > 1 for seeds in counts.values())
    return PublishedRows(rows, away, different, covers)


def _of(series: Series, runs: pd.DataFrame | None) -> pd.DataFrame:
    if runs is None or runs.empty:
        return pd.DataFrame()
    return runs[(runs["run_group"] == series.run_group) & (runs["agent"] == series.agent)]


def _rate(row: Mapping[Any, Any] | None) -> str:
    """Mean ± SEM in percent with two decimals, as published, and what it covers if it is not the whole split.

    A dash for "all" if only one split was run.
    """
    if row is None or row["repeats"] or math.isnan(row["mean"]):
        return DASH
    error = "n/a" if math.isnan(row["sem"]) else f"{100 * row['sem']:.2f}"
    cover = f" ({row['competitions']} of {row['full']})" if row["partial"] else ""
    return f"{100 * row['mean']:.2f} ± {error}{cover}"


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
    return ", ".join(f"{limit / 3600:g}" for limit in sorted(runs["time_limit_seconds"].dropna().unique())) or DASH


def _date(runs: pd.DataFrame) -> str:
    if "finished_at" not in runs:
        return DASH
    moments = pd.to_datetime(runs["finished_at"], utc=True, format="ISO8601").dropna()
    return f"{moments.max():%Y-%m-%d}" if len(moments) else DASH
