"""Paired differences between several series, and which of them cannot be told apart."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from grading.statistics.counting import Cells, Uncertainty
from grading.statistics.seeds import (
    Interval,
    holm,
    mean,
    mean_interval,
    paired_p_value,
    smallest_difference,
    standard_error,
)

LEVEL = 0.05
"""Corrected p-value below which two series are told apart."""


@dataclass(frozen=True)
class Difference:
    """The difference of the rate of the series at place `b` from that at place `a`, paired by competition.

    Seeds of a competition are averaged first, so the standard error covers the choice of competitions and the chance in
    the runs, but not the chance that a competition's mean over seeds hides. `p_value` is that of the paired t-test;
    `corrected` is corrected for all pairs (Holm). `smallest` is the smallest true difference that the test would find
    in 80 % of all repetitions. Figures are NaN with fewer than two competitions in common.
    """

    a: int
    b: int
    difference: float
    sem: float
    interval: Interval
    p_value: float
    corrected: float
    smallest: float
    competitions: int

    @property
    def told_apart(self) -> bool:
        """Whether the corrected test rejects that the two are equal."""
        return self.corrected < LEVEL  # False for NaN


def differences(series: Sequence[Cells], rate: str = "any_medal", interval: Uncertainty = "t") -> list[Difference]:
    """The difference of every pair of series in one split, over the competitions that both count.

    `interval` is the kind of the interval over competitions. Tests are Student's t in any case.
    """
    means = [
        {c: mean([cells.value(c, s, rate) for s in cells.counted]) for c in cells.competitions} for cells in series
    ]
    pairs = []
    for a, b in itertools.combinations(range(len(series)), 2):
        both = sorted(means[a].keys() & means[b].keys()) if series[a].counted and series[b].counted else []
        steps = [means[b][name] - means[a][name] for name in both]
        error = standard_error(steps)
        smallest = smallest_difference(error, len(steps) - 1)
        p = paired_p_value(steps)
        ends = mean_interval(steps, interval)
        pairs.append(Difference(a, b, mean(steps), error, ends, p, math.nan, smallest, len(steps)))
    corrected = holm([each.p_value for each in pairs])
    return [Difference(**{**vars(each), "corrected": p}) for each, p in zip(pairs, corrected, strict=True)]


def letters(count: int, pairs: Sequence[Difference]) -> list[str]:
    """For each of `count` series its letters: two series that share a letter cannot be told apart.

    The groups are the maximal cliques of the graph of pairs that are not told apart ("compact letter display", Piepho
    2004). They are found by the algorithm of Bron and Kerbosch 1973 with the pivots of Tomita et al. 2006.
    """
    near: dict[int, set[int]] = {place: set() for place in range(count)}
    for each in pairs:
        if not each.told_apart:
            near[each.a].add(each.b)
            near[each.b].add(each.a)
    groups: list[list[int]] = []

    def extend(clique: set[int], candidates: set[int], seen: set[int]) -> None:
        if not candidates and not seen:
            groups.append(sorted(clique))
        # Only what is not near the pivot: else a group of n would be found from each of its 2^n subsets.
        pivot = max(candidates | seen, key=lambda place: len(near[place] & candidates), default=None)
        for place in sorted(candidates if pivot is None else candidates - near[pivot]):
            extend(clique | {place}, candidates & near[place], seen & near[place])
            candidates, seen = candidates - {place}, seen | {place}

    extend(set(), set(range(count)), set())
    names = string.ascii_lowercase
    named = [names[n % 26] * (1 + n // 26) for n in range(len(groups))]
    return [
        " ".join(name for name, group in zip(named, sorted(groups), strict=True) if place in group)
        for place in range(count)
    ]
