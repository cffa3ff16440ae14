"""Mean rates and standard errors of medals and other outcomes over seeds, by complexity split or by category.

The rate of a seed is the share of the split's competitions with that outcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grading.statistics.counting import (
    EVERYTHING,
    By,
    Cells,
    Counting,
    Facts,
    Incomplete,
    Uncertainty,
    cells_of,
    never_run,
)
from grading.statistics.seeds import Interval, bootstrap_interval, mean, standard_error, t_interval, two_way_interval
from grading.statistics.series import BENCHMARK_SPLITS, RATES, SERIES, split_order

_RATE_COLUMNS = [*SERIES, "split", "rate", "mean", "sem", "ci_low", "ci_high", "both_low", "both_high"]
_RATE_COLUMNS += ["seeds", "competitions"]
_SEED_COLUMNS = [*SERIES, "split", "seed", "rate", "value", "counted"]
_CELL = [*SERIES, "seed", "competition_id"]
_GAP_COLUMNS = [*SERIES, "split", "seed", "competition_id", "reason", "treatment"]


@dataclass(frozen=True)
class Aggregate:
    """Rates over seeds, and how they were counted.

    rates: one row per series (run group, agent, edition), split and rate: `mean`, `sem` and the 95 % interval
        `ci_low`, `ci_high` as fractions, over `seeds` counted seeds and `competitions` competitions.
        `mean` is NaN without a counted seed, `sem` and the interval with fewer than two.
    by_seed: one row per series, split, seed and rate: its `value`, NaN where the seed was not `counted`.
    gaps: one row per ungraded competition of a seed: `reason` "missing" (no grade) or "failed" (our grading failed,
        so the agent's result is unknown), `treatment` "seed excluded" or "counted as failure". A planned run of a
        competition or a seed that the series never ran has the reason "planned" and the treatment "not counted".
    incomplete: how seeds with gaps were treated.
    interval: what `ci_low` and `ci_high` are: Student's t over seeds, or a bootstrap over competitions.
    """

    rates: pd.DataFrame
    by_seed: pd.DataFrame
    gaps: pd.DataFrame
    incomplete: Incomplete
    interval: Uncertainty = "t"

    def statement(self) -> str:
        """One or two sentences that say what is incomplete, and how it was treated."""
        if self.gaps.empty:
            return "Every seed is complete."
        open_cells = self.gaps[self.gaps["reason"] != "planned"]
        planned = len(self.gaps.loc[self.gaps["reason"] == "planned", _CELL].drop_duplicates())
        sentences = [self._about(open_cells)] if len(open_cells) else []
        if planned:
            runs = f"{planned} planned run{'s' * (planned != 1)}"
            sentences.append(f"Not complete: {runs} of competitions or seeds that were never run do not count.")
        return " ".join(sentences)

    def _about(self, gaps: pd.DataFrame) -> str:
        seeds = len(gaps[[*SERIES, "seed"]].drop_duplicates())
        cells = len(gaps[_CELL].drop_duplicates())
        what = f"{seeds} incomplete seed{'s' * (seeds != 1)} ({cells} ungraded submission{'s' * (cells != 1)})"
        if self.incomplete == "exclude":
            return f"{what}: left out of every split in which something is ungraded."
        return f"{what}: ungraded submissions are counted as failures."

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
    incomplete: Incomplete = "exclude",
    by: By = "complexity",
    interval: Uncertainty = "t",
) -> Aggregate:
    """Aggregate the table `grades` (columns as in `tables/grades`) over seeds, separately for each series.

    A seed is incomplete in a split if a competition of the split has no grade for it, or a grade with the outcome
    "failed".

    Args:
        grades: the graded submissions.
        runs: the table of runs; it adds seeds and competitions for which nothing was graded.
        expected: competition -> split, for the competitions that count. Default: those that the series ran, according
            to `grades` and `runs`.
        facts: complexity and category of competitions that have no grade.
        incomplete: "exclude" leaves an incomplete seed out of that split, "fail" counts ungraded submissions as
            failures.
        by: what a split is. Split "all" is low, medium and high together; with "category" it is every competition.
        interval: "t" is Student's t over seeds, which describes another set of seeds. "bootstrap" resamples
            competitions with the counted seeds averaged, which describes another choice of competitions.

    Raises:
        ValueError: `grades` lacks columns, which are named.
    """
    return rates_of(grades, runs, Counting(expected, facts or {}, incomplete, interval), by)


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
            per_seed = {seed: mean([cells.value(c, seed, rate) for c in cells.competitions]) for seed in cells.counted}
            by_seed += [
                {
                    **cells.label,
                    "seed": seed,
                    "rate": rate,
                    "value": per_seed.get(seed, math.nan),
                    "counted": seed in per_seed,
                }
                for seed in cells.seeds
            ]
            rates.append(
                {**cells.label, "rate": rate, **_summary(cells, rate, list(per_seed.values()), counting.interval)}
            )
    for each in never_run(grades, runs, counting):
        split = counting.facts.get(each["competition_id"], {}).get(by, "unknown")
        for one in (split, "all") if by == "category" or split in BENCHMARK_SPLITS else (split,):
            gaps.append({**each, "split": one, "reason": "planned", "treatment": "not counted"})
    return Aggregate(
        rates=pd.DataFrame(rates, columns=_RATE_COLUMNS),
        by_seed=pd.DataFrame(by_seed, columns=_SEED_COLUMNS),
        gaps=pd.DataFrame(gaps, columns=_GAP_COLUMNS),
        incomplete=counting.incomplete,
        interval=counting.interval,
    )


_TREATMENTS: dict[Incomplete, str] = {"exclude": "seed excluded", "fail": "counted as failure"}


def _summary(cells: Cells, rate: str, per_seed: list[float], interval: Uncertainty) -> dict[str, Any]:
    table = cells.table(rate)
    ends = bootstrap_interval([mean(row) for row in table]) if interval == "bootstrap" else t_interval(per_seed)
    # Of the headline only: it costs more than all other figures together.
    both = two_way_interval(table) if rate == "any_medal" else Interval(math.nan, math.nan)
    return {
        "mean": mean(per_seed),
        "sem": standard_error(per_seed),
        "ci_low": ends.low,
        "ci_high": ends.high,
        "both_low": both.low,
        "both_high": both.high,
        "seeds": len(per_seed),
        "competitions": len(cells.competitions),
    }
