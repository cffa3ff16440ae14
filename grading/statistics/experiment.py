"""The figures of an experiment as published: several run groups that are one agent, a fixed number of seeds, padded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from grading.statistics.seeds import mean, standard_error
from grading.statistics.series import BENCHMARK_SPLITS, RATES, latest_grades, seed_order, split_order


def experiment(
    grades: pd.DataFrame,
    run_groups: Sequence[str],
    splits: Mapping[str, Sequence[str]],
    num_seeds: int | None = None,
) -> dict[str, Any]:
    """Rates by split in percent, as a mapping that JSON can hold.

    The n-th attempt at a competition is its seed n: groups count in the given order, attempts of a group in the order
    of their seeds. A split has as many seeds as the most attempts at one of its competitions. What is missing of a
    seed counts as a failure, and so does a failed grading. A standard error is None with one seed, because JSON has no
    NaN. These are the rules of the published script with `--pad-missing`, which is called once for each split.

    Args:
        grades: the graded submissions of one edition.
        run_groups: the groups of the experiment.
        splits: the competitions of each split; all of them count.
        num_seeds: number of seeds of every split. Attempts beyond it do not count.

    Raises:
        ValueError: `grades` has several editions, or `num_seeds` is below 1.
    """
    if num_seeds is not None and num_seeds < 1:
        raise ValueError(f"an experiment has at least one seed, got {num_seeds}")
    table = latest_grades(grades)
    editions = sorted(set(table["edition"]))
    if len(editions) > 1:
        raise ValueError(f"scores of editions {', '.join(editions)} cannot be added up")
    attempts = _attempts(table, run_groups)
    ordered = sorted(splits.items(), key=lambda item: split_order(item[0]))
    figures = {split: _split(names, attempts, num_seeds) for split, names in ordered}
    return {
        "run_groups": list(run_groups),
        "edition": editions[0] if editions else None,
        "num_seeds": num_seeds or max((each["num_seeds"] for each in figures.values()), default=0),
        "splits": figures,
    }


def _split(
    names: Sequence[str], attempts: Mapping[str, Sequence[Mapping[Any, Any]]], num_seeds: int | None
) -> dict[str, Any]:
    """The figures of one split."""
    made = {name: len(attempts.get(name, ())) for name in names}
    seeds = num_seeds or max(made.values(), default=0)
    counted = [row for name in names for row in attempts.get(name, ())[:seeds]]
    return {
        "competitions": len(names),
        "num_seeds": seeds,
        "attempts": len(counted),
        "padded": sum(max(0, seeds - number) for number in made.values()),
        "failed": sum(row["outcome"] == "failed" for row in counted),
        "never_attempted": sorted(name for name in names if not made[name]),
        **{rate: _rate(names, attempts, rate, seeds) for rate in RATES},
    }


def benchmark_splits(listed: Mapping[str, Sequence[str]], ran: Sequence[str]) -> dict[str, list[str]]:
    """The splits in which something was run, with all their competitions, and "all" if these are the benchmark's."""
    found = {split: list(names) for split, names in listed.items() if set(names) & set(ran)}
    if set(BENCHMARK_SPLITS) <= set(found):
        found["all"] = [name for split in BENCHMARK_SPLITS for name in found[split]]
    return found


def ungraded(splits: Mapping[str, Mapping[str, Any]]) -> int:
    """How many runs without a grade count as failures in the figures of an experiment.

    The competitions of "all" are those of the benchmark's splits, but it may count more seeds than each of them.
    """
    found = {split: each["padded"] + each["failed"] for split, each in splits.items()}
    benchmark = sum(found.pop(split, 0) for split in BENCHMARK_SPLITS)
    return int(max(benchmark, found.pop("all", 0)) + sum(found.values()))


def _attempts(table: pd.DataFrame, run_groups: Sequence[str]) -> dict[str, list[dict[Any, Any]]]:
    """The attempts at each competition, in the order in which they are its seeds."""
    rank = {group: place for place, group in enumerate(run_groups)}
    rows = [row for row in table.to_dict("records") if row["run_group"] in rank]
    rows.sort(key=lambda row: (rank[row["run_group"]], seed_order(row["seed"]), str(row["agent"])))
    found: dict[str, list[dict[Any, Any]]] = {}
    for row in rows:
        found.setdefault(str(row["competition_id"]), []).append(row)
    return found


def _rate(
    names: Sequence[str], attempts: Mapping[str, Sequence[Mapping[Any, Any]]], rate: str, seeds: int
) -> dict[str, float | None]:
    """Mean and standard error over seeds of the share of competitions with the outcome, in percent."""
    shares = [mean([100.0 * _value(attempts.get(name, ()), seed, rate) for name in names]) for seed in range(seeds)]
    centre, error = mean(shares), standard_error(shares)
    return {"mean": None if math.isnan(centre) else centre, "sem": None if math.isnan(error) else error}


def _value(attempts: Sequence[Mapping[Any, Any]], seed: int, rate: str) -> float:
    if seed >= len(attempts) or attempts[seed]["outcome"] == "failed":
        return 0.0
    value = attempts[seed][rate]
    return float(pd.notna(value) and bool(value))
