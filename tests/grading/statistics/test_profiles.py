"""Interquartile means and performance profiles against scipy, literal counts, and a literal bootstrap."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grading.statistics.profiles import distribution
from grading.statistics.resampling import run_weights

NAN: Any = math.nan
RUNS = 100 * np.random.default_rng(1).beta(0.7, 0.8, (8, 3))


def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy() -> None:
    assert distribution(RUNS).iqm == pytest.approx(stats.trim_mean(RUNS, 0.25, axis=None))


def test_runs_at_the_quartiles_count_with_their_part() -> None:
    """Of five runs, the middle half is 2.5 runs: one, and three quarters of its neighbours."""
    assert distribution([[0, 10, 30, 80, 100]]).iqm == pytest.approx((0.75 * 10 + 30 + 0.75 * 80) / 2.5)


def test_competitions_count_alike_whatever_their_number_of_runs() -> None:
    """A run of a competition with one run has the weight of two of a competition with two."""
    runs: Any = [[10, 30], [60, NAN], [NAN, NAN], [90, 100]]
    found = distribution(runs, at=[20, 60, 95])
    literal = [10, 30, 60, 60, 90, 100]
    assert (found.runs, found.competitions) == (5, 3)
    assert found.profile.share == pytest.approx([sum(x > at for x in literal) / 6 for at in (20, 60, 95)])
    assert found.iqm == pytest.approx((0.5 * 30 + 60 + 60 + 0.5 * 90) / 3)


def test_a_profile_is_the_share_of_runs_above_each_value() -> None:
    found = distribution(RUNS, at=range(0, 101, 10)).profile
    assert found.share == pytest.approx([(at < RUNS).mean() for at in range(0, 101, 10)])
    assert all(low <= share <= high for low, share, high in zip(found.low, found.share, found.high, strict=True))


def test_intervals_are_those_of_a_literal_bootstrap() -> None:
    """Of three runs of each competition two are drawn; each competition has the same weight."""
    draw = random.Random(4)
    means, shares = [], []
    for _ in range(4_000):
        runs = [value for row in RUNS.tolist() for value in draw.choices(row, k=2)]
        means.append(stats.trim_mean(runs, 0.25))
        shares.append(statistics.fmean(value > 50 for value in runs))
    found = distribution(RUNS, at=[50], draws=4_000)
    ends = np.quantile(means, [0.025, 0.975])
    assert (found.interval.low, found.interval.high) == pytest.approx(ends, abs=1.5)
    assert (found.profile.low[0], found.profile.high[0]) == pytest.approx(np.quantile(shares, [0.025, 0.975]), abs=0.07)


def test_resampled_means_have_the_unbiased_variance() -> None:
    """s^2 / n, for competitions with one to four graded runs."""
    table = np.array([[1, 5, 9, 2], [3, NAN, 7, 8], [NAN, 4, 6, NAN], [5, NAN, NAN, NAN]])
    weights = run_weights(table, 60_000, np.random.default_rng(0))
    assert weights.sum(axis=2) == pytest.approx(1)
    means = (weights * np.nan_to_num(table)).sum(axis=2)
    for row, drawn in zip(table, means.T, strict=True):
        known = row[~np.isnan(row)]
        assert drawn.mean() == pytest.approx(known.mean(), abs=0.05)
        assert drawn.var() == pytest.approx(known.var(ddof=1) / len(known) if len(known) > 1 else 0, rel=0.05)


def test_without_repeated_runs_there_is_no_interval() -> None:
    found = distribution([[10], [20], [30]])
    assert found.iqm == pytest.approx(20)
    assert math.isnan(found.interval.low)
    assert all(map(math.isnan, found.profile.high))
    assert math.isnan(distribution([[NAN], [NAN]]).iqm)
    assert distribution([[NAN], [NAN]], at=[50]).profile.at == [50]


@given(st.lists(st.lists(st.one_of(st.floats(0, 100), st.just(NAN)), min_size=3, max_size=3), min_size=1, max_size=6))
def test_any_runs_have_a_distribution(rows: list[list[float]]) -> None:
    found = distribution(rows, draws=50)
    if not found.runs:
        return
    assert -1e-9 <= found.iqm <= 100 + 1e-9
    assert all(a >= b for a, b in itertools.pairwise(found.profile.share))
    assert found.profile.share[-1] == 0
