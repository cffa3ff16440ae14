"""The cost of runs: tokens, money and calls per run and per medal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.intervals import rate_interval
from grading.statistics.seeds import Interval
from grading.statistics.series import SERIES, by_series, latest_grades, runs_of

_SUMS = ("input_tokens", "output_tokens", "cost_usd", "latency_seconds")
_RUN_COLUMNS = ["run_group", "run_id", "competition_id", "seed", "models", "calls", *_SUMS]
_SERIES_COLUMNS = [*SERIES, "runs", "runs_with_usage", "medals", "calls", *_SUMS]
_SERIES_COLUMNS += ["cost_per_run", "tokens_per_run", "cost_per_medal", "tokens_per_medal", "hours"]
_SERIES_COLUMNS += [f"medals_per_{unit}{end}" for unit in ("dollar", "hour") for end in ("", "_low", "_high")]


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


def usage_by_series(grades: pd.DataFrame, usage: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """One row per series: totals over its runs, graded or not, and costs and tokens per run and per medal.

    Tokens and costs of a series that called no model through the gateway are NaN, since it may have called others.
    Per-run figures are means over the runs that called a model. Per-medal figures divide the total by the number of
    medals; they are NaN without a medal. Costs are NaN if the cost of any run is NaN. `medals_per_dollar` and
    `medals_per_hour` have the intervals of `per_unit`; hours are those of all runs, and NaN if the duration of one is
    unknown.

    Args:
        grades: the graded submissions.
        usage: the table of requests to language models.
        runs: the table of runs, which has the ungraded ones and their durations.
    """
    by_run = usage_by_run(usage)
    rows: list[dict[str, Any]] = []
    table = latest_grades(grades)
    agents = {key: set(part["agent"]) for key, part in table.groupby("run_group")} if len(table) else {}
    for series, group in by_series(table):
        ran = _runs(series, group, runs)
        known = set(ran["run_id"])
        requests = by_run[by_run["run_group"] == series["run_group"]]
        # Requests of runs that no table has are those of the only agent.
        alone = len(agents[series["run_group"]]) == 1 and (runs is None or runs.empty)
        used = requests if alone else requests[requests["run_id"].isin(known)]
        sums = _sums(used)
        tokens = sums["input_tokens"] + sums["output_tokens"]
        medals = int(group["any_medal"].sum())
        won = group.groupby("competition_id")["any_medal"].sum()
        hours = (ran["duration_seconds"].where(ran["duration_seconds"] >= 0) / 3600).groupby(ran["competition_id"])
        elapsed = hours.sum(min_count=1).where(hours.count() == hours.size())
        spent = used.groupby("competition_id")["cost_usd"].apply(lambda costs: costs.sum(skipna=False))
        rows.append(
            {
                **series,
                "runs": len(group),
                "runs_with_usage": len(used),
                "medals": medals,
                "calls": int(used["calls"].sum()),
                **sums,
                "cost_per_run": sums["cost_usd"] / len(used) if len(used) else math.nan,
                "tokens_per_run": tokens / len(used) if len(used) else math.nan,
                "cost_per_medal": sums["cost_usd"] / medals if medals else math.nan,
                "tokens_per_medal": tokens / medals if medals else math.nan,
                "hours": float(elapsed.sum(skipna=False)),
                **_per("dollar", won, spent, len(group)),
                **_per("hour", won, elapsed, len(group)),
            }
        )
    return pd.DataFrame(rows, columns=_SERIES_COLUMNS)


def _runs(series: Mapping[str, str], group: pd.DataFrame, runs: pd.DataFrame | None) -> pd.DataFrame:
    """Run, competition and duration of each run of a series: those in the table of runs, and the graded ones."""
    graded = group[["run_id", "competition_id"]].assign(duration_seconds=math.nan)
    own = runs_of(series, runs)
    if own is None or "duration_seconds" not in own:
        return graded
    found = own[["run_id", "competition_id", "duration_seconds"]].astype({"duration_seconds": float})
    missing = graded[~graded["run_id"].isin(set(found["run_id"]))]
    return pd.concat([found, missing], ignore_index=True) if len(missing) else found


def _per(unit: str, won: pd.Series, spent: pd.Series, runs: int) -> dict[str, float]:
    names = sorted({*won.index, *spent.index})
    medals, amounts = (part.reindex(names, fill_value=0).astype(float).tolist() for part in (won, spent))
    found = per_unit(medals, amounts, runs)
    name = f"medals_per_{unit}"
    return {name: found.rate, f"{name}_low": found.interval.low, f"{name}_high": found.interval.high}


@dataclass(frozen=True)
class PerUnit:
    """Medals per unit of what was spent, with a 95 % interval over other competitions like these and other runs."""

    rate: float
    interval: Interval


def per_unit(medals: Sequence[float], spent: Sequence[float], runs: int, level: float = 0.95) -> PerUnit:
    """Medals per dollar or hour: their sum over the sum of what was spent, each given by competition.

    The interval is the gamma interval of a rate (Fay and Feuer 1997, Confidence intervals for directly standardized
    rates) for the variance of a ratio of sums over competitions (Cochran 1977, section 6.3), and at least that of as
    many independent runs. It is not below 0, and has an upper end without a medal, too. NaN if nothing was spent, or an
    amount is not known or absurd.
    """
    unknown = PerUnit(math.nan, Interval(math.nan, math.nan))
    try:
        found = _per_unit(medals, spent, runs, level)
    except (OverflowError, ZeroDivisionError):  # amounts whose sum or square no float holds
        return unknown
    return found if all(map(math.isfinite, (found.rate, found.interval.low, found.interval.high))) else unknown


def _per_unit(medals: Sequence[float], spent: Sequence[float], runs: int, level: float) -> PerUnit:
    total, amount = math.fsum(medals), math.fsum(spent)
    if not (amount > 0 and math.isfinite(amount)):
        return PerUnit(math.nan, Interval(math.nan, math.nan))
    rate, count = total / amount, len(medals)
    variance = total * (1 - total / runs) / amount**2 if runs > total else 0.0
    if count > 1:
        residuals = math.fsum((won - rate * cost) ** 2 for won, cost in zip(medals, spent, strict=True))
        variance = max(variance, count / (count - 1) * residuals / amount**2)
    return PerUnit(rate, rate_interval(rate, variance / rate if variance and rate else 1 / amount, level))


def pareto_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Which of the points (cost, score) are on the Pareto front: no other costs no more and scores no less.

    Of equal points all are on it. A point with an unknown cost or score is not, and keeps no other from it.

    >>> pareto_front([(1.0, 0.2), (2.0, 0.1), (3.0, 0.4), (float("nan"), 0.9)])
    [True, False, True, False]
    """
    known = [point for point in points if not any(map(math.isnan, point))]

    def beaten(cost: float, score: float) -> bool:
        return any(a <= cost and b >= score and (a, b) != (cost, score) for a, b in known)

    return [point in known and not beaten(*point) for point in points]


def score_against_cost(rates: pd.DataFrame, totals: pd.DataFrame) -> pd.DataFrame:
    """One row per series and split: `cost_per_run` against `mean`, and whether it is on the `front` of the split.

    Args:
        rates: rows of `grading.statistics.aggregate.Aggregate.rates` of one outcome.
        totals: the table of `usage_by_series`; a cost is that of all runs of the series, whatever the split.
    """
    found = rates[[*SERIES, "split", "mean"]].merge(totals[[*SERIES, "cost_per_run"]], on=SERIES, how="left")
    found["front"] = False
    for _, part in found.groupby("split"):
        points = list(zip(part["cost_per_run"].astype(float), part["mean"].astype(float), strict=True))
        found.loc[part.index, "front"] = pareto_front(points)
    return found
