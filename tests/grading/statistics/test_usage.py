"""What a series cost: requests of ungraded runs, medals per dollar and hour, and the Pareto front."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.statistics.aggregate import aggregate
from grading.statistics.usage import pareto_front, per_unit, score_against_cost, usage_by_series
from tests.grading.statistics.rows import grade, run_of


def spent(competition: str, seed: int, cost: float, agent: str = "baseline", group: str = "g") -> dict[str, object]:
    return {**run_of(competition, seed, agent, group), "model": "m", "input_tokens": 10, "cost_usd": cost}


def ran(competition: str, seed: int, hours: float, agent: str = "baseline") -> dict[str, object]:
    return {**run_of(competition, seed, agent, "g"), "duration_seconds": 3600 * hours}


def test_requests_of_ungraded_runs_cost_as_well() -> None:
    grades = pd.DataFrame([grade("a", 0, "gold"), grade("b", 0), grade("a", 0, agent="other")])
    runs = pd.DataFrame([ran("a", 0, 1), ran("b", 0, 2), ran("c", 0, 3), ran("a", 0, 5, "other")])
    usage = pd.DataFrame([spent("a", 0, 1.0), spent("b", 0, 2.0), spent("c", 0, 4.0), spent("a", 0, 9.0, "other")])
    row, other = list[Any](usage_by_series(grades, usage, runs).to_dict("records"))
    assert (row["runs"], row["runs_with_usage"], row["cost_usd"], row["hours"]) == (2, 3, 7.0, 6.0)
    assert row["medals_per_dollar"] == pytest.approx(1 / 7)
    assert row["medals_per_hour"] == pytest.approx(1 / 6)
    assert row["medals_per_hour_low"] < 1 / 6 < row["medals_per_hour_high"]
    assert (other["cost_usd"], other["medals_per_dollar"], other["medals_per_dollar_low"]) == (9.0, 0.0, 0.0)
    backwards = runs.assign(duration_seconds=[3600.0, -1.0, 3600.0, 3600.0])
    found = usage_by_series(grades, usage, backwards)
    assert found["hours"].isna().tolist() == [True, False], "a negative duration is not known"
    assert math.isnan(found["medals_per_hour_high"][0])


def test_the_interval_equals_one_computed_from_covariances() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        count = int(generator.integers(2, 60))
        cost = generator.gamma(2, 3, count)
        medals = generator.binomial(3, generator.beta(0.5, 0.5, count)).astype(float)
        found = per_unit(medals.tolist(), cost.tolist(), 3 * count)
        rate = medals.sum() / cost.sum()
        assert found.rate == pytest.approx(rate)
        both = np.cov(medals, cost)
        variance = count * (both[0, 0] - 2 * rate * both[0, 1] + rate**2 * both[1, 1]) / cost.sum() ** 2
        variance = max(variance, medals.sum() * (1 - medals.mean() / 3) / cost.sum() ** 2)
        if medals.sum() in (0, 3 * count):
            continue
        shape, scale = rate**2 / variance, variance / rate
        assert found.interval.low == pytest.approx(stats.gamma.ppf(0.025, shape, scale=scale))
        assert found.interval.high == pytest.approx(stats.gamma.ppf(0.975, shape + 1, scale=scale))


def test_without_a_medal_there_is_an_upper_end() -> None:
    """It is that of no event in a Poisson process: -ln(0.025) events."""
    found = per_unit([0.0, 0.0, 0.0], [10.0, 20.0, 30.0], 9)
    assert (found.rate, found.interval.low) == (0.0, 0.0)
    assert found.interval.high == pytest.approx(-math.log(0.025) / 60)


@pytest.mark.parametrize("cost", [[0.0, 0.0], [1.0, math.nan]])
def test_what_costs_nothing_or_something_unknown_has_no_rate(cost: list[float]) -> None:
    found = per_unit([1.0, 0.0], cost, 2)
    assert math.isnan(found.rate)
    assert math.isnan(found.interval.high)


@pytest.mark.parametrize(
    ("medals", "cost"),
    [([1.0], [1e-300]), ([0.0, 0.0], [1e308, 1e308]), ([1.0, 1.0], [1e160, 1e160]), ([1.0], [1e-320])],
)
def test_what_costs_more_or_less_than_floats_hold_has_no_rate(medals: list[float], cost: list[float]) -> None:
    found = per_unit(medals, cost, 4)
    assert all(map(math.isnan, (found.rate, found.interval.low, found.interval.high)))


def test_a_group_without_requests_has_hours_and_no_costs() -> None:
    grades = pd.DataFrame([grade("a", 0, "gold"), grade("a", 0, agent="other")])
    runs = pd.DataFrame([ran("a", 0, 2), ran("a", 0, 5, "other")])
    for usage in (pd.DataFrame(), pd.DataFrame([spent("a", 0, 9.0, "other")])):
        row = next(iter(usage_by_series(grades, usage, runs).to_dict("records")))
        assert (row["medals_per_hour"], row["hours"], row["calls"], row["runs_with_usage"]) == (0.5, 2.0, 0, 0)
        unknown = ("cost_usd", "cost_per_run", "tokens_per_run", "cost_per_medal", "medals_per_dollar")
        assert all(math.isnan(row[name]) for name in unknown), "it may have asked a model past the gateway"


def test_the_front_has_what_nothing_cheaper_beats() -> None:
    points = [(1.0, 0.5), (1.0, 0.4), (2.0, 0.5), (3.0, 0.9), (3.0, 0.9), (0.5, 0.1), (math.nan, 1.0), (9.0, math.nan)]
    assert pareto_front(points) == [True, False, False, True, True, True, False, False]
    assert pareto_front([]) == []


def test_scores_against_costs_by_split() -> None:
    agents = {"cheap": (1.0, None), "dear": (5.0, "gold"), "bad": (6.0, None)}
    grades = pd.DataFrame([grade("a", 0, medal, agent=agent) for agent, (_, medal) in agents.items()])
    usage = pd.DataFrame([spent("a", 0, cost, agent) for agent, (cost, _) in agents.items()])
    runs = pd.DataFrame([ran("a", 0, 1, agent) for agent in agents])
    rates = aggregate(grades).rates
    found = score_against_cost(rates[rates["rate"] == "any_medal"], usage_by_series(grades, usage, runs))
    low = found[found["split"] == "low"].set_index("agent")
    assert low["front"].to_dict() == {"bad": False, "cheap": True, "dear": True}
    assert (low["cost_per_run"]["dear"], low["mean"]["dear"]) == (5.0, 1.0)
