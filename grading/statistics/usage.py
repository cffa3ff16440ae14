"""The cost of runs: tokens, money and calls per run and per medal."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from grading.statistics.series import SERIES, by_series, latest_grades

_SUMS = ("input_tokens", "output_tokens", "cost_usd", "latency_seconds")
_RUN_COLUMNS = ["run_group", "run_id", "competition_id", "seed", "models", "calls", *_SUMS]
_SERIES_COLUMNS = [*SERIES, "runs", "runs_with_usage", "medals", "calls", *_SUMS]
_SERIES_COLUMNS += ["cost_per_run", "tokens_per_run", "cost_per_medal", "tokens_per_medal"]


def usage_by_run(usage: pd.DataFrame) -> pd.DataFrame:
    """One row per run of the table `usage` (which has one row per call of a language model): calls, models, and sums.

    A sum is NaN if no call of the run has the value. The cost is also NaN if the price of any call is unknown, because
    an unknown price is not zero.
    """
    if usage.empty:
        return pd.DataFrame(columns=_RUN_COLUMNS)
    present = [name for name in _SUMS if name in usage]
    table = usage[["run_group", "run_id"]].assign(**{name: usage[name].astype(float) for name in present})
    runs = table.groupby(["run_group", "run_id"], sort=True)
    found = runs[present].sum(min_count=1).reindex(columns=list(_SUMS))
    found.loc[_unpriced(table).groupby([table["run_group"], table["run_id"]]).any(), "cost_usd"] = math.nan
    found["calls"] = runs.size()
    first = usage.drop_duplicates(["run_group", "run_id"]).set_index(["run_group", "run_id"])
    names = usage[["run_group", "run_id", "model"]].dropna(subset=["model"]).astype({"model": str}).drop_duplicates()
    models = names.sort_values("model").groupby(["run_group", "run_id"])["model"].agg(", ".join)
    found = found.join(first[["competition_id", "seed"]]).join(models.rename("models"))
    return found.fillna({"models": ""}).reset_index()[_RUN_COLUMNS]


def _sums(rows: pd.DataFrame) -> dict[str, float]:
    sums = {name: float(rows[name].sum(min_count=1)) if name in rows else math.nan for name in _SUMS}
    return {**sums, "cost_usd": math.nan} if _unpriced(rows).any() else sums


def _unpriced(rows: pd.DataFrame) -> pd.Series:
    """Which rows used tokens whose cost is unknown."""
    tokens = rows[[name for name in _SUMS[:2] if name in rows]].fillna(0).sum(axis=1)
    unknown = rows["cost_usd"].isna() if "cost_usd" in rows else pd.Series(False, index=rows.index)
    return unknown & (tokens > 0)


def usage_by_series(grades: pd.DataFrame, usage: pd.DataFrame) -> pd.DataFrame:
    """One row per series: totals over its graded runs, and costs and tokens per run and per medal.

    Per-run figures are means over the runs that called a model. Per-medal figures divide the total, including runs
    without a medal, by the number of medals; they are NaN without a medal. Costs are NaN if the cost of any run is NaN.
    """
    by_run = usage_by_run(usage)
    rows: list[dict[str, Any]] = []
    for series, group in by_series(latest_grades(grades)):
        own = group.merge(by_run.drop(columns=["competition_id", "seed"]), on=["run_group", "run_id"], how="left")
        used = own[own["calls"].notna()]
        if used.empty:
            continue
        sums = _sums(used)
        tokens = sums["input_tokens"] + sums["output_tokens"]
        medals = int(group["any_medal"].sum())
        rows.append(
            {
                **series,
                "runs": len(group),
                "runs_with_usage": len(used),
                "medals": medals,
                "calls": int(used["calls"].sum()),
                **sums,
                "cost_per_run": sums["cost_usd"] / len(used),
                "tokens_per_run": tokens / len(used),
                "cost_per_medal": sums["cost_usd"] / medals if medals else math.nan,
                "tokens_per_medal": tokens / medals if medals else math.nan,
            }
        )
    return pd.DataFrame(rows, columns=_SERIES_COLUMNS)
