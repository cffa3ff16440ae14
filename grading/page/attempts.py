"""Tables about several attempts and about cost, as the page shows them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from grading.page.build import clean
from grading.page.format import DASH, number, percent
from grading.page.sections import repeated_by_all
from grading.page.view import Series, View
from grading.statistics.attempts import best_of, pass_at
from grading.statistics.series import SPLITS
from grading.statistics.usage import usage_by_run, usage_by_series


def pass_table(view: View, grades: pd.DataFrame) -> tuple[list[int], list[tuple[Series, str, list[str]]]] | None:
    """pass@k of any medal: the ks, and rows (series, split, a text a k); None where nothing was tried twice."""
    found = pass_at(grades) if len(grades) else pd.DataFrame()
    if found.empty or found["k"].max() < 2:
        return None
    found = found[found["rate"] == "any_medal"]
    ks = sorted({int(k) for k in found["k"]})
    repeated = repeated_by_all(list(found["split"].unique()))
    order = {split: place for place, split in enumerate(SPLITS)}
    rows: dict[tuple[int, str], dict[int, str]] = {}
    for row in found.to_dict("records"):
        if repeated and row["split"] == "all":
            continue
        interval = "" if math.isnan(row["ci_low"]) else f" [{percent(row['ci_low'], 0)}, {percent(row['ci_high'], 0)}]"
        cell = f"{percent(row['mean'])}{interval}"
        rows.setdefault((_series(view, row).index, str(row["split"])), {})[int(row["k"])] = cell
    keys = sorted(rows, key=lambda key: (key[0], order.get(key[1], len(order)), key[1]))
    return ks, [(view.series[i], clean(split), [rows[i, split].get(k, DASH) for k in ks]) for i, split in keys]


def best_scores(view: View, grades: pd.DataFrame) -> dict[tuple[str, int], str]:
    """What to say of a competition's attempts by competition and series index: the best of all of them, and of two."""
    texts: dict[tuple[str, int], str] = {}
    if grades.empty:
        return texts
    for row in best_of(grades).to_dict("records"):
        if row["attempts"] > 1 and not math.isnan(row["score"]):
            key = (clean(row["competition_id"]), _series(view, row).index)
            name = "mean" if row["k"] == 1 else f"best of {row['k']}"
            texts[key] = ", ".join(filter(None, [texts.get(key, ""), f"{name} {number(row['score'])}"]))
    return texts


def cost_tables(
    view: View, grades: pd.DataFrame, usage: pd.DataFrame | None
) -> tuple[list[tuple[Series, dict[Any, Any]]], list[dict[Any, Any]]] | None:
    """Totals by series, and one row a run; None where no call of a model was recorded."""
    if usage is None or usage.empty or grades.empty:
        return None
    totals = [(_series(view, row), row) for row in usage_by_series(grades, usage).to_dict("records")]
    runs = []
    for row in usage_by_run(usage).to_dict("records"):
        texts: dict[Any, Any] = {n: clean(row[n]) for n in ("run_group", "run_id", "competition_id", "models")}
        runs.append({**row, **texts})
    return totals, runs


def money(value: float) -> str:
    """US dollars: cents, or three significant digits below one.

    >>> money(12.5), money(0.01234), money(float("nan"))
    ('$12.50', '$0.0123', '–')
    """
    if math.isnan(value):
        return DASH
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.3g}"


def count(value: float) -> str:
    """A number of tokens: whole, with separators.

    >>> count(1234567.0), count(float("nan"))
    ('1,234,567', '–')
    """
    return DASH if math.isnan(value) else f"{value:,.0f}"


def _series(view: View, row: dict[Any, Any]) -> Series:
    key = (clean(row["run_group"]), clean(row["agent"]), clean(row["edition"]))
    return next(s for s in view.series if (s.run_group, s.agent, s.edition) == key)
