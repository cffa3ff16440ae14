"""Mean rates and standard errors of medals and other outcomes over seeds, by complexity split or by category.

The rate of a seed is the share of the split's competitions with that outcome.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from grading.statistics.seeds import bootstrap_interval, mean, standard_error, t_interval
from grading.statistics.series import (
    BENCHMARK_SPLITS,
    RATES,
    SERIES,
    SPLITS,
    by_series,
    latest_grades,
    seed_order,
    split_order,
)

Incomplete = Literal["exclude", "fail"]
By = Literal["complexity", "category"]
Uncertainty = Literal["t", "bootstrap"]
Facts = Mapping[str, Mapping[str, str]]  # competition -> its complexity and category

_RATE_COLUMNS = [*SERIES, "split", "rate", "mean", "sem", "ci_low", "ci_high", "seeds", "competitions"]
_SEED_COLUMNS = [*SERIES, "split", "seed", "rate", "value", "counted"]
_GAP_COLUMNS = [*SERIES, "split", "seed", "competition_id", "reason", "treatment"]


@dataclass(frozen=True)
class Aggregate:
    """Rates over seeds, and how they were counted.

    rates: one row per series (run group, agent, edition), split and rate: `mean`, `sem` and the 95 % interval
        `ci_low`, `ci_high` as fractions, over `seeds` counted seeds and `competitions` competitions.
        `mean` is NaN without a counted seed, `sem` and the interval with fewer than two.
    by_seed: one row per series, split, seed and rate: its `value`, NaN where the seed was not `counted`.
    gaps: one row per ungraded competition of a seed: `reason` "missing" (no grade) or "failed" (our grading failed,
        so the agent's result is unknown), `treatment` "seed excluded" or "counted as failure".
    incomplete: how seeds with gaps were treated.
    interval: what `ci_low` and `ci_high` are: Student's t over seeds, or a bootstrap over competitions.
    """

    rates: pd.DataFrame
    by_seed: pd.DataFrame
    gaps: pd.DataFrame
    incomplete: Incomplete
    interval: Uncertainty = "t"

    def statement(self) -> str:
        """One sentence that says how incomplete seeds were treated."""
        if self.gaps.empty:
            return "Every seed is complete."
        seeds = len(self.gaps[[*SERIES, "seed"]].drop_duplicates())
        cells = len(self.gaps[[*SERIES, "seed", "competition_id"]].drop_duplicates())
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
    if incomplete not in ("exclude", "fail"):
        raise ValueError(f"incomplete must be 'exclude' or 'fail', got {incomplete!r}")
    if interval not in ("t", "bootstrap"):
        raise ValueError(f"interval must be 't' or 'bootstrap', got {interval!r}")
    table = latest_grades(grades)
    # A competition without a grade in one series may be graded in another.
    known: dict[Any, Any] = {**(facts or {}), **{row["competition_id"]: row for row in table.to_dict("records")}}
    rates: list[dict[str, Any]] = []
    by_seed: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    for series, group in by_series(table):
        ran = _runs_of(series, runs)
        seeds = sorted({*group["seed"], *(() if ran is None else ran["seed"])}, key=seed_order)
        for split, competitions in _splits(group, ran, expected, known, by).items():
            label = {**series, "split": split}
            cells, unknown = _cells(group, competitions, seeds)
            gaps += [{**label, **gap, "treatment": _TREATMENTS[incomplete]} for gap in unknown]
            open_seeds = {gap["seed"] for gap in unknown}
            counted = [seed for seed in seeds if incomplete == "fail" or seed not in open_seeds]
            for rate in RATES:
                per_seed = {seed: mean([cells[c, seed][rate] for c in competitions]) for seed in counted}
                by_seed += [
                    {
                        **label,
                        "seed": seed,
                        "rate": rate,
                        "value": per_seed.get(seed, math.nan),
                        "counted": seed in per_seed,
                    }
                    for seed in seeds
                ]
                values = list(per_seed.values())
                if interval == "bootstrap":
                    ends = bootstrap_interval([mean([cells[c, s][rate] for s in counted]) for c in competitions])
                else:
                    ends = t_interval(values)
                summary = {
                    "mean": mean(values),
                    "sem": standard_error(values),
                    "ci_low": ends.low,
                    "ci_high": ends.high,
                }
                rates.append(
                    {**label, "rate": rate, **summary, "seeds": len(values), "competitions": len(competitions)}
                )
    return Aggregate(
        rates=pd.DataFrame(rates, columns=_RATE_COLUMNS),
        by_seed=pd.DataFrame(by_seed, columns=_SEED_COLUMNS),
        gaps=pd.DataFrame(gaps, columns=_GAP_COLUMNS),
        incomplete=incomplete,
        interval=interval,
    )


_TREATMENTS: dict[Incomplete, str] = {"exclude": "seed excluded", "fail": "counted as failure"}


def _runs_of(series: Mapping[str, str], runs: pd.DataFrame | None) -> pd.DataFrame | None:
    """The runs of a series: those of its edition, or all of the group if it has none, as in a regraded group."""
    if runs is None or runs.empty:
        return None
    own = runs[(runs["run_group"] == series["run_group"]) & (runs["agent"] == series["agent"])]
    same = own[own["edition"] == series["edition"]]
    return own if same.empty else same


def _splits(
    group: pd.DataFrame, ran: pd.DataFrame | None, expected: Mapping[str, str] | None, facts: Facts, by: By
) -> dict[str, list[str]]:
    """The competitions of each non-empty split, with splits in published order."""
    if expected is not None:
        unknown = {c: facts.get(c, {}).get(by, "unknown") for c in expected}
        where = dict(expected) if by == "complexity" else {**unknown, **_stated(group, by, expected)}
    else:
        where = _stated(group, by)
        # A run without a row in `grades` still counts as a competition of the group.
        names = () if ran is None else ran["competition_id"]
        where |= {c: facts.get(c, {}).get(by, "unknown") for c in names if c not in where}
    found = {split: sorted(c for c, s in where.items() if s == split) for split in sorted(set(where.values()))}
    if by == "category":
        return {**found, "all": sorted(where)} if where else {}
    everything = sorted(itertools.chain.from_iterable(found.get(split, []) for split in BENCHMARK_SPLITS))
    found = {**found, **({"all": everything} if everything else {})}
    known = {split: found[split] for split in SPLITS if split in found}
    return {**known, **found}


def _stated(group: pd.DataFrame, by: By, of: Container[str] | None = None) -> dict[str, str]:
    """The split of each competition according to its grades."""
    pairs = zip(group["competition_id"], group[by], strict=True)
    return {competition: split for competition, split in pairs if of is None or competition in of}


def _cells(
    group: pd.DataFrame, competitions: list[str], seeds: list[Any]
) -> tuple[dict[tuple[str, Any], dict[str, float]], list[dict[str, Any]]]:
    """The rates of each (competition, seed), 0 if ungraded, and a list of ungraded cells with the reasons."""
    rows = {(row["competition_id"], row["seed"]): row for row in group.to_dict("records")}
    cells: dict[tuple[str, Any], dict[str, float]] = {}
    unknown: list[dict[str, Any]] = []
    for competition, seed in itertools.product(competitions, seeds):
        row = rows.get((competition, seed))
        if row is None or row["outcome"] == "failed":
            reason = "missing" if row is None else "failed"
            unknown.append({"seed": seed, "competition_id": competition, "reason": reason})
            cells[competition, seed] = dict.fromkeys(RATES, 0.0)
        else:
            cells[competition, seed] = {rate: float(bool(row[rate])) for rate in RATES}
    return cells, unknown
