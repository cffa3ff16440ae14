"""Which competitions and seeds count, and what is missing of them: once, for all statistics.

A run is *ungraded* if it has no grade, or a grade with the outcome "failed" (our grading failed, so the agent's result
is unknown). `Counting.incomplete` decides what happens then. All figures of a split are computed from the same cells,
so that they describe the same runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pandas as pd

from grading.medals import human_percentile
from grading.statistics.series import BENCHMARK_SPLITS, SPLITS, by_series, latest_grades, runs_of, seed_order

Incomplete = Literal["available", "exclude", "fail"]
By = Literal["complexity", "category"]
Facts = Mapping[str, Mapping[str, str]]  # competition -> its complexity and category
Planned = Mapping[str, Collection[tuple[str, Any]]]  # run group -> pairs of competition and seed


@dataclass(frozen=True)
class Counting:
    """How runs are counted.

    expected: competition -> split, for the competitions that count. Default: those that the series ran, according to
        the tables of grades and runs.
    facts: complexity and category of competitions that have no grade.
    incomplete: with "available", the graded runs of each competition count. "exclude" leaves a seed out of a split if
        any of its runs in the split is ungraded. "fail" counts ungraded runs as failures, as published results do.
    planned: the runs that each run group planned, as pairs of competition and seed. With "fail", they count although
        they were not made; otherwise those of competitions and seeds that were never run do not, and are named.
    """

    expected: Mapping[str, str] | None = None
    facts: Facts = field(default_factory=dict)
    incomplete: Incomplete = "available"
    planned: Planned = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown treatment."""
        if self.incomplete not in get_args(Incomplete):
            raise ValueError(f"incomplete must be one of {', '.join(get_args(Incomplete))}, got {self.incomplete!r}")

    def chosen(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of the competitions that count, for figures of single runs.

        Rates need all rows: a seed that was run anywhere is missing of the competitions that it lacks.
        """
        if self.expected is None or "competition_id" not in table:
            return table
        return table[table["competition_id"].isin(list(self.expected))]


EVERYTHING = Counting()
"""Count what was graded, of the competitions that were run."""


@dataclass(frozen=True)
class Cells:
    """The runs of a series in one split: `competitions` x `seeds`.

    `rows` are the graded runs by (competition, seed). `gaps` are the others, with the reason "missing" (no grade) or
    "failed". `counted` has the seeds that count of each competition, without competitions of which none does.
    """

    series: dict[str, str]
    split: str
    competitions: list[str]
    seeds: list[Any]
    counted: Mapping[str, list[Any]]
    rows: Mapping[tuple[str, Any], Mapping[Any, Any]]
    gaps: list[dict[str, Any]]

    @property
    def label(self) -> dict[str, str]:
        """The columns that identify the split of the series in a table."""
        return {**self.series, "split": self.split}

    @property
    def counted_seeds(self) -> list[Any]:
        """The seeds that count of any competition."""
        counted = set(itertools.chain.from_iterable(self.counted.values()))
        return [seed for seed in self.seeds if seed in counted]

    @property
    def balanced(self) -> bool:
        """Whether all competitions that count have the same seeds."""
        return len({tuple(seeds) for seeds in self.counted.values()}) < 2

    def value(self, competition: str, seed: Any, rate: str) -> float:
        """1 if the outcome `rate` holds for a run, else 0, also if the run is not graded."""
        row = self.rows.get((competition, seed))
        if row is None:
            return 0.0
        held = row[rate]
        return float(held) if isinstance(held, bool) else 0.0 if pd.isna(held) else float(bool(held))

    def outcomes(self, rate: str) -> dict[str, list[float]]:
        """The values of `rate` that count, by competition."""
        return {c: [self.value(c, seed, rate) for seed in seeds] for c, seeds in self.counted.items()}

    def percentiles(self, leaderboards: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
        """The share of teams that each run beats, 0 to 1, by competition; 0 without a score.

        Competitions without a leaderboard in `leaderboards`, or with one that gives no direction, are left out.
        """
        return {
            competition: [share_beaten(self.rows.get((competition, seed)), points) for seed in seeds]
            for competition, seeds in self.counted.items()
            if gives_shares(points := leaderboards.get(competition, ()))
        }


def gives_shares(points: Sequence[float]) -> bool:
    """Whether points of a leaderboard tell which share of teams a score beats: equal ones give no direction."""
    return len(points) > 1 and points[0] != points[-1]


def share_beaten(grade: Mapping[Any, Any] | None, points: Sequence[float]) -> float:
    """The share of a leaderboard's teams that a graded run beats, 0 to 1; 0 without a grade or a score."""
    if grade is None or not grade["valid_submission"] or pd.isna(grade["score"]):
        return 0.0
    return human_percentile(float(grade["score"]), points) / 100


def cells_of(
    grades: pd.DataFrame, runs: pd.DataFrame | None = None, counting: Counting = EVERYTHING, by: By = "complexity"
) -> Iterator[Cells]:
    """Yield the cells of each series and non-empty split, with splits in published order.

    Args:
        grades: the graded submissions, columns as in `tables/grades`.
        runs: the table of runs; it adds seeds and competitions for which nothing was graded.
        counting: how they are counted.
        by: what a split is. Split "all" is low, medium and high together; with "category" it is every competition.

    Raises:
        ValueError: `grades` lacks columns, which are named.
    """
    table = latest_grades(grades)
    # A competition without a grade in one series may be graded in another.
    stated = _stated(table, by) if len(table) else {}
    known: Facts = {**counting.facts, **{competition: {by: split} for competition, split in stated.items()}}
    for series, group in by_series(table):
        ran = runs_of(series, runs)
        names, numbers = _ran(group, ran, counting)
        seeds = sorted(numbers, key=seed_order)
        # `to_dict("records")` would take more than twice as long, and every statistic of a page asks.
        rows = zip(*(group[name].tolist() for name in group), strict=True)
        graded = {(row["competition_id"], row["seed"]): row for row in (dict(zip(group, r, strict=True)) for r in rows)}
        for split, competitions in _splits(group, names, counting.expected, known, by).items():
            yield _cells({**series}, split, competitions, seeds, graded, counting.incomplete)


def _cells(
    series: dict[str, str],
    split: str,
    competitions: list[str],
    seeds: list[Any],
    graded: Mapping[tuple[str, Any], Mapping[Any, Any]],
    incomplete: Incomplete,
) -> Cells:
    rows, gaps = {}, []
    for competition, seed in itertools.product(competitions, seeds):
        row = graded.get((competition, seed))
        if row is None or row["outcome"] == "failed":
            gaps.append({"seed": seed, "competition_id": competition, "reason": "missing" if row is None else "failed"})
        else:
            rows[competition, seed] = row
    if incomplete == "available":
        by_competition = {c: [seed for seed in seeds if (c, seed) in rows] for c in competitions}
    else:
        incomplete_seeds = {gap["seed"] for gap in gaps} if incomplete == "exclude" else set()
        by_competition = {c: [seed for seed in seeds if seed not in incomplete_seeds] for c in competitions}
    counted = {competition: own for competition, own in by_competition.items() if own}
    return Cells(series, split, competitions, seeds, counted, rows, gaps)


def _ran(group: pd.DataFrame, ran: pd.DataFrame | None, counting: Counting) -> tuple[set[str], set[Any]]:
    """The competitions and seeds of a series: those that were run, and those planned if what is missing counts."""
    tables = [table for table in (group, ran) if table is not None]
    names, seeds = ({value for table in tables for value in table[column]} for column in ("competition_id", "seed"))
    if counting.incomplete == "fail" and len(group):
        for name, seed in counting.planned.get(group["run_group"].iloc[0], ()):
            names.add(name)
            seeds.add(seed)
    return names, seeds


def never_run(grades: pd.DataFrame, runs: pd.DataFrame | None, counting: Counting) -> Iterator[dict[str, Any]]:
    """The planned runs of competitions or seeds that a series never ran: its columns, `competition_id` and `seed`.

    Of a competition and a seed that both were run, a missing run is a gap of `Cells`.
    """
    for series, group in by_series(latest_grades(grades)):
        names, seeds = _ran(group, runs_of(series, runs), counting)
        for name, seed in sorted(counting.planned.get(series["run_group"], ())):
            wanted = counting.expected is None or name in counting.expected
            if wanted and not (name in names and seed in seeds):
                yield {**series, "competition_id": name, "seed": seed}


def _splits(
    group: pd.DataFrame, names: Collection[str], expected: Mapping[str, str] | None, facts: Facts, by: By
) -> dict[str, list[str]]:
    """The competitions of each non-empty split, with splits in published order."""
    if expected is not None:
        unknown = {c: facts.get(c, {}).get(by, "unknown") for c in expected}
        where = dict(expected) if by == "complexity" else {**unknown, **_stated(group, by, expected)}
    else:
        where = _stated(group, by)
        # A run without a row in `grades` still counts as a competition of the group.
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
