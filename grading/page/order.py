"""The order of agents: from the best to the worst of the split that the first figure shows first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from common.cleaning import clean
from grading.statistics.series import BENCHMARK_SPLITS, SERIES

Rates = Sequence[Mapping[Any, Any]]
"""Rows of `grading.statistics.aggregate.Aggregate.rates` of any medal."""


def repeated_by_all(splits: Sequence[str]) -> str | None:
    """The benchmark split that was run if it is the only one, in which case "all" would repeat its figures."""
    run = [split for split in splits if split in BENCHMARK_SPLITS]
    return run[0] if len(run) == 1 else None


def splits_of(rates: Rates) -> list[str]:
    """The splits to show: without "all" if it would repeat the only one."""
    splits = list(dict.fromkeys(str(row["split"]) for row in rates))
    return [split for split in splits if split != "all"] if repeated_by_all(splits) else splits


def first_split(rates: Rates) -> str:
    """The split in which the most agents have a rate, if possible "all"; empty without rates."""
    splits = splits_of(rates)
    counts = {split: sum(row["split"] == split and not math.isnan(row["mean"]) for row in rates) for split in splits}
    return max(splits, key=lambda split: (counts[split], split == "all"), default="")


def full_size(row: Mapping[Any, Any], sizes: Mapping[str, int]) -> int:
    """The number of competitions in the split of a rate; `sizes` has that of each split but "all"."""
    everything = sum(sizes.get(split, 0) for split in BENCHMARK_SPLITS)
    return int({"all": everything, **sizes}.get(row["split"]) or row["competitions"])


def place(mean: float, partial: bool) -> tuple[bool, bool, float]:
    """The key to sort by: the best first, then rates of a part of the split, which may be an easy one, then unknown."""
    return math.isnan(mean), partial, 0.0 if math.isnan(mean) else -mean


def best_first(rates: Rates, sizes: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Run group, agent and edition of each series that has a rate in the first split, from the best to the worst."""
    own = [row for row in rates if row["split"] == first_split(rates)]
    own.sort(key=lambda row: place(float(row["mean"]), row["competitions"] < full_size(row, sizes)))
    return [tuple(clean(row[column]) for column in SERIES) for row in own]
