"""Statistics over seeds: textbook values, and too few values."""

import math

import pandas as pd
import pytest

from grading.statistics.seeds import mean, pass_at_k, standard_error, t_interval


def test_standard_error_is_the_sample_deviation_over_the_root_of_n() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert standard_error(values) == pytest.approx(pd.Series(values).sem())
    assert standard_error([3.0, 3.0, 3.0]) == 0
    assert math.isnan(standard_error([3.0]))
    assert math.isnan(standard_error([]))


def test_the_mean_of_nothing_is_nan() -> None:
    assert math.isnan(mean([]))


def test_the_t_interval_of_a_textbook_sample() -> None:
    # Three seeds: t(2, 0.975) = 4.302653
    interval = t_interval([0.1, 0.2, 0.3])
    reach = 4.302653 * 0.1 / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((0.2 - reach, 0.2 + reach))
    assert math.isnan(t_interval([0.1]).low)
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_interval([0.1, 0.2], level=95)


@pytest.mark.parametrize(
    ("attempts", "successes", "k", "expected"),
    [(5, 0, 1, 0), (5, 5, 3, 1), (5, 2, 1, 0.4), (5, 2, 2, 0.7), (3, 1, 3, 1)],
)
def test_pass_at_k_is_the_chance_of_drawing_a_success(attempts: int, successes: int, k: int, expected: float) -> None:
    assert pass_at_k(attempts, successes, k) == pytest.approx(expected)


def test_pass_at_k_needs_k_attempts() -> None:
    assert math.isnan(pass_at_k(2, 1, 3))
    with pytest.raises(ValueError, match="successes"):
        pass_at_k(2, 3, 1)


@pytest.mark.parametrize("values", [[0.0, math.nan], [math.nan, 0.0], [math.inf, -math.inf], []])
def test_a_mean_with_what_is_no_number_is_none(values: list[float]) -> None:
    assert math.isnan(mean(values))
