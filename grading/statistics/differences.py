"""Differences between agents, paired by competition: whether one is better, and which agents cannot be told apart.

There are two questions. Is one better *on these competitions*, so that other runs would show it again? And is one
better *on competitions like these*? Each has a test of its own.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grading.statistics.intervals import UNKNOWN, run_variance, within_range
from grading.statistics.seeds import Interval, holm, mean, paired_p_value, smallest_difference, standard_error

LEVEL = 0.05
"""Corrected p-value below which two series are told apart."""
MIN_COMPETITIONS = 6
"""From fewer, nothing follows about others: flipping the signs of five differences gives p = 1/16 at best."""

Question = Literal["these", "like_these"]
"""Who is better on "these" competitions, where only runs vary, or on others "like_these", which vary, too."""
QUESTIONS: dict[Question, str] = {"these": "on these competitions", "like_these": "on competitions like these"}

Outcomes = Mapping[str, Sequence[float]]
"""Competition -> outcome of each run that counts, 0 to 1."""


@dataclass(frozen=True)
class TTest:
    """A two-sided t-test of the hypothesis that a difference is 0.

    `sem` is the standard error of the difference, `interval` its 95 % confidence interval. `corrected` is the p-value
    corrected for all tests of its family (Holm). `smallest` is the smallest true difference that the test would find in
    80 % of all repetitions; NaN if that would be above 1, where too little is known to find any. What cannot be known
    is NaN.
    """

    sem: float = math.nan
    interval: Interval = UNKNOWN
    p_value: float = math.nan
    corrected: float = math.nan
    smallest: float = math.nan

    @property
    def told_apart(self) -> bool:
        """Whether the corrected test rejects that the two are equal."""
        return self.corrected < LEVEL  # False for NaN


UNTESTED = TTest()


@dataclass(frozen=True)
class Paired:
    """The mean difference of `b` from `a` over the `competitions` that both have; their means over these.

    these: tests whether other runs of these competitions would show a difference. NaN if fewer than nine in ten
        competitions have two runs of each, and if all runs of each competition agree in an outcome that is not binary.
    like_these: tests whether competitions like these would. NaN with fewer than `MIN_COMPETITIONS`.
    """

    a: float
    b: float
    difference: float
    competitions: int
    these: TTest
    like_these: TTest

    def __neg__(self) -> Paired:
        """The difference of `a` from `b`."""
        these, like_these = (
            replace(test, interval=Interval(-test.interval.high, -test.interval.low))
            for test in (self.these, self.like_these)
        )
        return Paired(self.b, self.a, -self.difference, self.competitions, these, like_these)


def paired(a: Outcomes, b: Outcomes, binary: bool = True) -> Paired:
    """The difference of `b` from `a`. Runs of a competition are averaged first. `binary` outcomes are 0 or 1."""
    both = sorted(a.keys() & b.keys())
    sides = [[side[name] for name in both] for side in (a, b)]
    means = [[mean(runs) for runs in side] for side in sides]
    steps = [y - x for x, y in zip(*means, strict=True)]
    difference = mean(steps)
    variances = [run_variance(side, binary) for side in sides] if both else []
    degrees = sum(each.degrees for each in variances)
    these = _t_test(difference, math.sqrt(sum(each.variance for each in variances)), degrees) if both else UNTESTED
    like_these = UNTESTED
    if len(steps) >= MIN_COMPETITIONS:
        like_these = _t_test(difference, standard_error(steps), len(steps) - 1)
        like_these = replace(like_these, p_value=paired_p_value(steps) if any(steps) else 1.0)
    return Paired(mean(means[0]), mean(means[1]), difference, len(both), these, like_these)


def _t_test(difference: float, error: float, degrees: int) -> TTest:
    """Student's t-test. The interval is cut at -1 and 1. Only the error is known if it is 0 or NaN."""
    if not error > 0 or degrees < 1:
        return TTest(sem=error)
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(degrees, 0.975)) * error
    interval = within_range(Interval(difference - reach, difference + reach))
    p_value = float(2 * stdtr(degrees, -abs(difference) / error))
    smallest = smallest_difference(error, degrees)
    return TTest(error, interval, p_value, math.nan, smallest if smallest <= 1 else math.nan)


@dataclass(frozen=True)
class Difference:
    """The difference between two series: the one at place `better` minus the one at place `worse`, at least 0."""

    better: int
    worse: int
    paired: Paired

    @property
    def told_apart(self) -> bool:
        """Whether competitions like these tell the two apart."""
        return self.paired.like_these.told_apart


def differences(series: Sequence[Outcomes], binary: bool = True) -> list[Difference]:
    """The difference of every pair of `series`, over all competitions that both have.

    p-values of each question are corrected for all pairs (Holm). Pairs without a competition in common are left out.
    """
    found = []
    for first, second in itertools.combinations(range(len(series)), 2):
        each = paired(series[second], series[first], binary)
        if each.competitions:
            found.append((second, first, -each) if each.difference < 0 else (first, second, each))
    corrected = correct([each for _, _, each in found])
    return [Difference(better, worse, each) for (better, worse, _), each in zip(found, corrected, strict=True)]


def correct(family: Sequence[Paired]) -> list[Paired]:
    """The same differences, with the p-values of each question corrected for all of the family (Holm)."""
    these = holm([each.these.p_value for each in family])
    like_these = holm([each.like_these.p_value for each in family])
    return [
        replace(each, these=replace(each.these, corrected=p), like_these=replace(each.like_these, corrected=q))
        for each, p, q in zip(family, these, like_these, strict=True)
    ]


def letters(count: int, pairs: Sequence[Difference]) -> list[str]:
    """For each of `count` series its letters: two series that share a letter cannot be told apart.

    A series without a p-value against any other has none, because nothing is known of it.

    The groups are the maximal cliques of the graph of pairs that are not told apart ("compact letter display", Piepho
    2004). They are found by the algorithm of Bron and Kerbosch 1973 with the pivots of Tomita et al. 2006.
    """
    tested = [each for each in pairs if not math.isnan(each.paired.like_these.p_value)]
    known = {place for each in tested for place in (each.better, each.worse)}
    near = {place: known - {place} for place in known}
    for each in tested:
        if each.told_apart:
            near[each.better].discard(each.worse)
            near[each.worse].discard(each.better)
    groups: list[list[int]] = []

    def extend(clique: set[int], candidates: set[int], seen: set[int]) -> None:
        if not candidates and not seen:
            groups.append(sorted(clique))
        # Only what is not near the pivot: else a group of n would be found from each of its 2^n subsets.
        pivot = max(candidates | seen, key=lambda place: len(near[place] & candidates), default=None)
        for place in sorted(candidates if pivot is None else candidates - near[pivot]):
            extend(clique | {place}, candidates & near[place], seen & near[place])
            candidates, seen = candidates - {place}, seen | {place}

    extend(set(), known, set())
    names = string.ascii_lowercase
    named = [names[n % 26] * (1 + n // 26) for n in range(len(groups))]
    return [
        " ".join(name for name, group in zip(named, sorted(groups), strict=True) if place in group)
        for place in range(count)
    ]
