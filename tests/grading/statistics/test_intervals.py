"""Intervals over other runs and over other competitions, against other ways of computing them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from grading.statistics.intervals import (
    count_interval,
    interval_over_competitions,
    interval_over_runs,
    run_variance,
    share_interval,
)


@pytest.mark.parametrize(("hits", "trials"), [(0, 6), (3, 7), (66, 66), (12, 75)])
def test_a_share_of_whole_trials_has_the_exact_interval_of_scipy(hits: int, trials: int) -> None:
    found = share_interval(hits / trials, trials)
    exact = stats.binomtest(hits, trials).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_six_successes_of_six_are_no_certainty() -> None:
    found = interval_over_runs([[1.0, 1.0]] * 3)
    assert (found.low, found.high) == (pytest.approx(0.025 ** (1 / 6)), 1)


def test_runs_of_one_competition_each_say_nothing_of_the_variance_within() -> None:
    """Then they are taken for independent runs of the same chance, which vary most."""
    found = interval_over_runs([[1.0], [0.0], [0.0], [1.0]])
    exact = stats.binomtest(2, 4).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_the_variance_is_that_of_repeated_runs() -> None:
    """Percentiles: no competition is added. The runs of each competition are drawn again from a known distribution."""
    generator = np.random.default_rng(1)
    centres, spread = generator.uniform(0.2, 0.8, 30), 0.05
    repeated = [generator.normal(centres, spread, (3, 30)).mean() for _ in range(4_000)]
    found = run_variance(generator.normal(centres, spread, (3, 30)).T.tolist(), binary=False)
    assert found.degrees == 60
    assert math.sqrt(found.variance) == pytest.approx(np.std(repeated), rel=0.2)


def test_outcomes_that_agree_by_chance_are_not_taken_for_certain() -> None:
    """One more competition is added, in which one of three runs differs."""
    outcomes = [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    alike = [np.var(runs, ddof=1) / 3 for runs in (*outcomes, [1.0, 0.0, 0.0])]
    assert run_variance(outcomes).variance == pytest.approx(sum(alike) / 9)


def test_a_single_run_has_the_variance_of_the_others() -> None:
    outcomes = [*[[0.2, 0.4]] * 5, *[[0.5, 0.5]] * 4, [0.9]]
    within = np.var([0.2, 0.4], ddof=1)
    pooled = 5 * within / 9
    assert run_variance(outcomes, binary=False).variance == pytest.approx((5 * within / 2 + pooled) / 100)


def test_competitions_with_a_single_run_are_not_judged_by_a_few_others() -> None:
    """Of 75 competitions, Low has three seeds, which nearly always agree, and the others one."""
    outcomes = [*[[0.0, 0.0, 0.0]] * 22, *[[1.0], [0.0]] * 26]
    assert math.isnan(run_variance(outcomes).variance)
    found = interval_over_runs(outcomes)
    assert found.high - found.low > 0.15


def test_a_mean_of_percentiles_has_the_interval_of_korn_and_graubard() -> None:
    """The effective number of trials and its correction for degrees of freedom, by numpy and scipy."""
    shares = np.random.default_rng(3).beta(2, 3, (22, 3))
    centre = shares.mean()
    trials = centre * (1 - centre) / (shares.var(axis=1, ddof=1).mean() / 3 / 22)
    trials *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 44)) ** 2
    hits = trials * centre
    want = stats.beta.ppf(0.025, hits, trials - hits + 1), stats.beta.ppf(0.975, hits + 1, trials - hits)
    found = interval_over_runs(shares.tolist(), binary=False)
    assert (found.low, found.high) == pytest.approx(want)
    assert found.high - found.low < 0.12


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_equal_percentiles_are_no_certainty(share: float) -> None:
    """Runs that agree to the last digit, such as those without a submission, are as independent trials."""
    found = interval_over_runs([[share] * 3] * 5, binary=False)
    exact = stats.binomtest(round(15 * share), 15).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_a_mean_count_has_the_interval_of_its_variance() -> None:
    """Far from 0 it is nearly Student's t; at 0 and for counts that vary less, the exact one of Poisson."""
    counts = np.random.default_rng(4).negative_binomial(5, 0.2, (40, 3))
    error = math.sqrt(counts.var(axis=1, ddof=1).mean() / 3 / 40)
    found = count_interval(counts.tolist())
    want = stats.t.interval(0.95, 80, counts.mean(), error)
    assert (found.low, found.high) == pytest.approx(want, rel=0.02)
    for total in (0, 24):
        found = count_interval([[total / 12] * 3] * 4)
        low, high = stats.chi2.ppf(0.025, 2 * total) / 2, stats.chi2.ppf(0.975, 2 * (total + 1)) / 2
        assert (found.low, found.high) == pytest.approx((np.nan_to_num(low) / 12, high / 12))
    assert math.isnan(count_interval([[3.0], [4.0]]).low), "one run a competition"


def test_more_runs_and_more_competitions_make_it_narrower() -> None:
    def width(runs: int, competitions: int) -> float:
        outcomes = [[float(n % 3 == 0), *[float(n % 2 == 0)] * (runs - 1)] for n in range(competitions)]
        found = interval_over_runs(outcomes)
        return found.high - found.low

    assert width(2, 22) > width(4, 22) > width(4, 75)


def test_other_competitions_have_the_spread_of_the_means() -> None:
    """Far from 0 and 1 it is nearly Student's t over competitions."""
    means = list(np.random.default_rng(5).uniform(0, 1, 75))
    found = interval_over_competitions(means)
    low, high = stats.t.interval(0.95, 74, np.mean(means), stats.sem(means))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.012)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_equal_competitions_are_no_certainty(share: float) -> None:
    found = interval_over_competitions([share] * 22)
    exact = stats.binomtest(round(22 * share), 22).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_nothing_is_known_without_runs_or_of_one_competition() -> None:
    assert math.isnan(interval_over_runs([]).low)
    assert math.isnan(interval_over_competitions([0.5]).low)
    assert math.isnan(run_variance([[1.0], [0.0]]).variance)
