"""Rates of medals and other outcomes, by complexity split or by category, with their intervals.

The rate of a split is the mean over its competitions of the share of each one's counted runs with that outcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from common.units import counted
from grading.statistics.counting import (
    EVERYTHING,
    By,
    Cells,
    Counting,
    Facts,
    Incomplete,
    cells_of,
    never_run,
)
from grading.statistics.intervals import interval_over_competitions, interval_over_runs
from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import BENCHMARK_SPLITS, RATES, SERIES, split_order

_RATE_COLUMNS = [*SERIES, "split", "rate", "mean", "sem", "ci_low", "ci_high", "both_low", "both_high"]
_RATE_COLUMNS += ["if_failed", "if_earned", "runs", "missing", "seeds", "competitions"]
_SEED_COLUMNS = [*SERIES, "split", "seed", "rate", "value", "counted"]
_CELL = [*SERIES, "seed", "competition_id"]
_GAP_COLUMNS = [*SERIES, "split", "seed", "competition_id", "reason", "treatment"]


@dataclass(frozen=True)
class Aggregate:
    """Rates, and how they were counted.

    rates: one row per series (run group, agent, edition), split and rate, as fractions. `mean` is over `competitions`
        competitions, of each over its counted seeds; NaN if none counts. `ci_low` and `ci_high` are the 95 % interval
        over other runs of these competitions, `both_low` and `both_high` that over other competitions, too. `sem` is
        the standard error over the `seeds` counted seeds, of the rate of each; NaN with fewer than two, and if seeds
        count of unlike competitions. `runs` are graded and `missing` are not; `if_failed` and `if_earned` are the mean
        if all that are missing had failed, or had that outcome.
    by_seed: one row per series, split, seed and rate: its `value` over the competitions that count of that seed, NaN
        where the seed was not `counted`.
    gaps: one row per ungraded run: `reason` "missing" (no grade) or "failed" (our grading failed, so the agent's result
        is unknown), `treatment` "left out", "seed excluded" or "counted as failure". A planned run of a competition or
        a seed that the series never ran has the reason "planned" and the treatment "not counted".
    incomplete: how ungraded runs were treated.
    """

    rates: pd.DataFrame
    by_seed: pd.DataFrame
    gaps: pd.DataFrame
    incomplete: Incomplete

    def statement(self) -> str:
        """One or two sentences that say what is missing, and how it was treated."""
        if self.gaps.empty:
            return "Every run is graded."
        open_cells = self.gaps[self.gaps["reason"] != "planned"]
        planned = len(self.gaps.loc[self.gaps["reason"] == "planned", _CELL].drop_duplicates())
        sentences = [self._about(open_cells)] if len(open_cells) else []
        if planned:
            runs = f"{planned} planned run{'s' * (planned != 1)}"
            sentences.append(f"Not complete: {runs} of competitions or seeds that were never run do not count.")
        return " ".join(sentences)

    def _about(self, gaps: pd.DataFrame) -> str:
        cells = gaps[[*_CELL, "reason"]].drop_duplicates()
        failed = int((cells["reason"] == "failed").sum())
        what = f"{counted(len(cells), 'run')} without a grade"
        if failed:
            what += f" ({counted(failed, 'failed grading')}: look into {'it' if failed == 1 else 'them'})"
        return f"{what}: {_STATEMENTS[self.incomplete]}"

    def wide(self, rate: str = "any_medal") -> pd.DataFrame:
        """`mean` and `sem` of one rate: a row per series, columns (split, "mean" | "sem") in published order."""
        chosen = self.rates[self.rates["rate"] == rate]
        table = chosen.pivot(index=SERIES, columns="split", values=["mean", "sem"]).swaplevel(axis=1)
        splits = sorted(chosen["split"].unique(), key=split_order)
        return table[[(split, value) for split in splits for value in ("mean", "sem")]]


def aggregate(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    *,
    expected: Mapping[str, str] | None = None,
    facts: Facts | None = None,
    incomplete: Incomplete = "available",
    by: By = "complexity",
) -> Aggregate:
    """Aggregate the table `grades` (columns as in `tables/grades`) separately for each series.

    A run is ungraded if it has no grade, or a grade with the outcome "failed".

    Args:
        grades: the graded submissions.
        runs: the table of runs; it adds seeds and competitions for which nothing was graded.
        expected: competition -> split, for the competitions that count. Default: those that the series ran, according
            to `grades` and `runs`.
        facts: complexity and category of competitions that have no grade.
        incomplete: "available" counts the graded runs of each competition, "exclude" leaves a seed with an ungraded run
            out of that split, and "fail" counts ungraded runs as failures.
        by: what a split is. Split "all" is low, medium and high together; with "category" it is every competition.

    Raises:
        ValueError: `grades` lacks columns, which are named.
    """
    return rates_of(grades, runs, Counting(expected, facts or {}, incomplete), by)


def rates_of(
    grades: pd.DataFrame, runs: pd.DataFrame | None = None, counting: Counting = EVERYTHING, by: By = "complexity"
) -> Aggregate:
    """Like `aggregate`, with the runs counted as `counting` says."""
    rates: list[dict[str, Any]] = []
    by_seed: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    for cells in cells_of(grades, runs, counting, by):
        gaps += [{**cells.label, **gap, "treatment": _TREATMENTS[counting.incomplete]} for gap in cells.gaps]
        for rate in RATES:
            outcomes, seeds = cells.outcomes(rate), cells.counted_seeds
            per_seed = {
                seed: mean([cells.value(name, seed, rate) for name, own in cells.counted.items() if seed in own])
                for seed in seeds
            }
            by_seed += (
                {**cells.label, "seed": s, "rate": rate, "value": per_seed.get(s, math.nan), "counted": s in per_seed}
                for s in cells.seeds
            )
            sem = standard_error(list(per_seed.values())) if cells.balanced else math.nan
            figures = {**_summary(list(outcomes.values())), "sem": sem, "seeds": len(seeds), **_bounds(cells, rate)}
            rates.append({**cells.label, "rate": rate, **figures})
    for each in never_run(grades, runs, counting):
        split = counting.facts.get(each["competition_id"], {}).get(by, "unknown")
        for one in (split, "all") if by == "category" or split in BENCHMARK_SPLITS else (split,):
            gaps.append({**each, "split": one, "reason": "planned", "treatment": "not counted"})
    return Aggregate(
        rates=pd.DataFrame(rates, columns=_RATE_COLUMNS),
        by_seed=pd.DataFrame(by_seed, columns=_SEED_COLUMNS),
        gaps=pd.DataFrame(gaps, columns=_GAP_COLUMNS),
        incomplete=counting.incomplete,
    )


_TREATMENTS: dict[Incomplete, str] = {
    "available": "left out",
    "exclude": "seed excluded",
    "fail": "counted as failure",
}
_STATEMENTS: dict[Incomplete, str] = {
    "available": "each competition counts with its graded runs.",
    "exclude": "a seed is left out of every split of which it lacks a run.",
    "fail": "counted as failures.",
}


def _summary(outcomes: list[list[float]]) -> dict[str, Any]:
    means = [mean(runs) for runs in outcomes]
    runs, both = interval_over_runs(outcomes), interval_over_competitions(means)
    return {
        "mean": mean(means),
        "ci_low": runs.low,
        "ci_high": runs.high,
        "both_low": both.low,
        "both_high": both.high,
        "competitions": len(means),
    }


def _bounds(cells: Cells, rate: str) -> dict[str, Any]:
    """The rate of all runs, if those that are missing had failed, and if they had the outcome; and their numbers."""
    earned = {name: sum(cells.value(name, seed, rate) for seed in cells.seeds) for name in cells.competitions}
    graded = {name: sum((name, seed) in cells.rows for seed in cells.seeds) for name in cells.competitions}
    runs, missing = len(cells.rows), len(cells.gaps)
    most = len(cells.seeds)
    return {
        "runs": runs,
        "missing": missing,
        "if_failed": mean([earned[name] / most for name in cells.competitions]),
        "if_earned": mean([(earned[name] + most - graded[name]) / most for name in cells.competitions]),
    }
