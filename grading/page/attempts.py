"""The page's tables of pass@k, best scores and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pandas as pd

from common.cleaning import clean
from grading.page.format import DASH, number, percent
from grading.page.order import first_split, repeated_by_all
from grading.page.results import Results
from grading.page.view import Series, View
from grading.statistics.attempts import best_of
from grading.statistics.series import SERIES, split_order
from grading.statistics.usage import score_against_cost, usage_by_run, usage_by_series

_MAX_ROWS = 100  # runs whose cost a lean page lists, the most expensive first


def pass_table(view: View, results: Results) -> tuple[list[int], list[tuple[Series, str, list[str]]]] | None:
    """pass@k of any medal: the values of k, and rows (series, split, one text per k); None without a second attempt."""
    rates = results.pass_at if len(results.grades) else pd.DataFrame()
    if rates.empty or rates["k"].max() < 2:
        return None
    rates = rates[rates["rate"] == "any_medal"]
    ks = sorted({int(k) for k in rates["k"]})
    repeated = repeated_by_all(list(rates["split"].unique()))
    rows: dict[tuple[int, str], dict[int, str]] = {}
    for row in rates.to_dict("records"):
        if repeated and row["split"] == "all":
            continue
        interval = "" if math.isnan(row["ci_low"]) else f" [{percent(row['ci_low'], 0)}, {percent(row['ci_high'], 0)}]"
        cell = f"{percent(row['mean'])}{interval}"
        rows.setdefault((view.series_of(row).index, str(row["split"])), {})[int(row["k"])] = cell
    keys = sorted(rows, key=lambda key: (key[0], split_order(key[1])))
    return ks, [(view.series[i], clean(split), [rows[i, split].get(k, DASH) for k in ks]) for i, split in keys]


def best_scores(view: View, results: Results) -> dict[tuple[str, int], str]:
    """A summary of the attempts by competition and series index: mean score, and expected best of k."""
    texts: dict[tuple[str, int], str] = {}
    if results.grades.empty:
        return texts
    for row in best_of(results.grades, results.runs, results.counting).to_dict("records"):
        if row["attempts"] > 1 and not math.isnan(row["score"]):
            key = (clean(row["competition_id"]), view.series_of(row).index)
            name = "mean" if row["k"] == 1 else f"best of {row['k']}:"
            texts[key] = ", ".join(filter(None, [texts.get(key, ""), f"{name} {number(row['score'])}"]))
    return texts


def cost_tables(
    view: View, results: Results
) -> tuple[list[tuple[Series, Mapping[Any, Any]]], list[dict[Any, Any]]] | None:
    """Totals by series, with any medal and the Pareto front, and one row per run; None without a recorded call.

    Lean pages have the most expensive runs.
    """
    usage = results.usage
    if usage is None or usage.empty or results.grades.empty:
        return None
    by_series = usage_by_series(results.grades, usage, results.runs)
    rates = results.aggregate().rates
    medals = rates[rates["rate"] == "any_medal"]
    split = first_split(medals.to_dict("records"))
    front = score_against_cost(medals[medals["split"] == split], by_series)[[*SERIES, "mean", "front"]]
    totals = view.in_order(by_series.merge(front, on=SERIES, how="left").to_dict("records"))
    runs = []
    for row in usage_by_run(usage).to_dict("records"):
        texts: dict[Any, Any] = {n: clean(row[n]) for n in ("run_group", "run_id", "competition_id", "models")}
        page = results.trajectories.get((row["run_group"], row["run_id"]))
        runs.append({**row, **texts, "trajectory": quote(page) if page else None})
    if view.lean:  # a row for each of thousands of runs would be half of the page
        runs = sorted(runs, key=lambda row: -row["cost_usd"] if row["cost_usd"] == row["cost_usd"] else 0.0)[:_MAX_ROWS]
    return totals, runs


def money(value: float) -> str:
    """US dollars: cents, or three significant digits below one.

    >>> money(12.5), money(0.01234), money(float("nan"))
    ('$12.50', '$0.0123', '–')
    """
    if math.isnan(value):
        return DASH
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.3g}"


def amount(value: float) -> str:
    """A number of medals for a dollar or an hour, with three significant digits.

    >>> amount(0.1234), amount(1250.4), amount(float("nan"))
    ('0.123', '1,250', '–')
    """
    return DASH if math.isnan(value) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def count(value: float) -> str:
    """A number of tokens: whole, with separators.

    >>> count(1234567.0), count(float("nan"))
    ('1,234,567', '–')
    """
    return DASH if math.isnan(value) else f"{value:,.0f}"
