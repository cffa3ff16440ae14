"""Power of a comparison against simulated comparisons, and variances against those that results were drawn with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from grading.statistics.power import (
    Variances,
    competitions_needed,
    detectable,
    power_of,
    seeds_needed,
    standard_error,
    variances,
)

KNOWN = Variances(within=0.09, between=0.04, measured=True, competitions=75)


@pytest.mark.parametrize(("competitions", "seeds"), [(22, 3), (75, 1), (75, 3)])
def test_power_is_the_share_of_simulated_comparisons_that_find_the_difference(competitions: int, seeds: int) -> None:
    """Normal results of two agents; z-tests of the mean paired difference, in 4,000 repetitions."""
    generator = np.random.default_rng(7)
    shape = (4_000, competitions)
    true = 0.08 + math.sqrt(KNOWN.between) * generator.standard_normal(shape)
    noise = [math.sqrt(KNOWN.within) * generator.standard_normal((*shape, seeds)).mean(axis=2) for _ in range(2)]
    here = (0.08 + noise[1] - noise[0]).mean(axis=1) / math.sqrt(2 * KNOWN.within / seeds / competitions)
    found = power_of(0.08, standard_error(KNOWN, competitions, seeds, "these"))
    assert found == pytest.approx((abs(here) > stats.norm.ppf(0.975)).mean(), abs=0.03)
    paired = stats.ttest_1samp(true + noise[1] - noise[0], 0, axis=1).pvalue < 0.05
    found = power_of(0.08, standard_error(KNOWN, competitions, seeds, "like_these"))
    # The t-test finds a little less than the normal approximation, with 22 competitions up to 3 points.
    assert found == pytest.approx(paired.mean(), abs=0.04)


def test_the_smallest_difference_has_the_power_that_it_was_computed_for() -> None:
    for power in (0.5, 0.8, 0.95):
        for error in (0.01, 0.2):
            assert power_of(detectable(error, power), error) == pytest.approx(power, abs=1e-3)
    assert detectable(1.0, 0.8) == pytest.approx(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
    assert power_of(0.0, 0.1) == pytest.approx(0.05), "without a difference, the level of the test"


def test_numbers_that_are_needed_are_the_smallest_that_suffice() -> None:
    count = int(competitions_needed(KNOWN, 0.05, 3, 0.8))
    errors = [standard_error(KNOWN, number, 3, "like_these") for number in (count - 1, count)]
    assert detectable(errors[1], 0.8) <= 0.05 < detectable(errors[0], 0.8)
    seeds = int(seeds_needed(KNOWN, 0.05, 75, 0.8))
    errors = [standard_error(KNOWN, 75, number, "these") for number in (seeds - 1, seeds)]
    assert detectable(errors[1], 0.8) <= 0.05 < detectable(errors[0], 0.8)
    assert math.isnan(competitions_needed(Variances(0.1, math.nan, True, 1), 0.05, 3, 0.8))


def test_variances_are_those_that_the_results_were_drawn_with() -> None:
    """The mean over 200 benchmarks of 40 competitions; a tenth of the runs is not graded."""
    generator = np.random.default_rng(9)
    found = []
    for _ in range(200):
        difficulty = 0.3 * generator.standard_normal(40)
        tables = []
        for _agent in range(3):
            own = difficulty + math.sqrt(KNOWN.between / 2) * generator.standard_normal(40)
            table = own[:, None] + math.sqrt(KNOWN.within) * generator.standard_normal((40, 3))
            table[generator.random(table.shape) < 0.1] = np.nan
            tables.append(table)
        found.append((variances(tables), variances(tables[:1])))
    assert np.mean([several.within for several, _ in found]) == pytest.approx(KNOWN.within, rel=0.03)
    assert np.mean([several.between for several, _ in found]) == pytest.approx(KNOWN.between, rel=0.1)
    # One agent's rates vary by 0.09 + 0.02; a half of twice that is what two such agents are supposed to differ by.
    assert np.mean([one.between for _, one in found]) == pytest.approx(0.11, rel=0.1)
    assert [several.measured for several, _ in found[:1]] == [True]
    assert found[0][1].measured is False


def test_variances_of_a_small_table() -> None:
    """By hand: s^2 is 0, 1/2 and 1/3; the means 1, 1/2 and 2/3."""
    found = variances([np.array([[1, 1, np.nan], [0, 1, np.nan], [0, 1, 1]])])
    assert found.within == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    noise = (0 / 2 + 1 / 4 + 1 / 9) / 3
    assert found.between == pytest.approx(max(0, np.var([1, 1 / 2, 2 / 3], ddof=1) - noise))
    assert found.competitions == 3


def test_what_single_runs_do_not_tell_is_unknown() -> None:
    found = variances([np.array([[1.0], [0.0]])])
    assert math.isnan(found.within)
    assert math.isnan(found.between)
    assert math.isnan(variances([np.array([[1.0, 0.0]])]).between), "one competition"
    assert math.isnan(variances([np.array([[1.0, 0], [np.nan, np.nan]]), np.array([[np.nan, np.nan], [1, 0]])]).between)
