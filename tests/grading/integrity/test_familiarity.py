"""Familiarity and its correlation with scores, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from grading.integrity.familiarity import at_places, mean_probability
from grading.statistics.correlation import MIN_COMPETITIONS, correlation


def test_the_mean_is_over_probabilities_not_their_logarithms() -> None:
    assert mean_probability([None, math.log(0.9), math.log(0.1)]) == pytest.approx(0.5)
    assert math.isnan(mean_probability([None]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [1, 8])
def test_coefficients_and_intervals_are_scipys(seed: int, decimals: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=30).round(decimals)  # one decimal: many ties
    y = (0.5 * x + rng.normal(size=30)).round(decimals)
    found = correlation(x.tolist(), y.tolist())
    pearson = stats.pearsonr(x, y)
    assert found.pearson == pytest.approx(pearson.statistic)
    assert (found.pearson_low, found.pearson_high) == pytest.approx(tuple(pearson.confidence_interval(0.95)))
    assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.spearman_low < found.spearman < found.spearman_high


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    truth = 6 / math.pi * math.asin(0.5 / 2)  # Spearman's coefficient of a normal pair with Pearson's 0.5
    hits = 0
    for _ in range(400):
        x, e = rng.normal(size=(2, 40))
        found = correlation(x.tolist(), (0.5 * x + math.sqrt(0.75) * e).tolist())
        hits += found.spearman_low <= truth <= found.spearman_high
    assert 0.92 <= hits / 400 <= 0.98


@pytest.mark.parametrize("n", [4, 9, 30])
def test_p_values_are_scipys(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    found = correlation(x.tolist(), y.tolist())
    assert found.pearson_p == pytest.approx(stats.pearsonr(x, y).pvalue)
    assert found.spearman_p == pytest.approx(stats.spearmanr(x, y).pvalue)
    assert math.isnan(correlation(x[:3].tolist(), y[:3].tolist()).pearson_p)
    assert correlation(x.tolist(), (2 * x).tolist()).pearson_p < 1e-6


def test_places_weigh_texts_by_their_length() -> None:
    texts = [[0.0] * 9000, [-1.0] * 3000]
    drawn = at_places(texts, 1000, "a competition")
    assert len(drawn) == 1000
    assert drawn.count(0.0) / 1000 == pytest.approx(0.75, abs=0.05)
    assert drawn == at_places(texts, 1000, "a competition")
    assert drawn != at_places(texts, 1000, "another")
    assert at_places([[-1.0], [], [-2.0]], 1000, "s") == [-1.0, -2.0], "with fewer tokens, all of them"


def test_too_little_data_gives_no_interval() -> None:
    few = correlation([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert (few.n, few.spearman) == (3, 0.5)
    assert math.isnan(few.spearman_low)
    assert MIN_COMPETITIONS == 4
    assert math.isnan(correlation([], []).pearson)
    assert math.isnan(correlation([1.0] * 5, [1.0, 2, 3, 4, 5]).spearman)


def test_pairs_with_an_unknown_score_are_left_out() -> None:
    found = correlation([0.1, 0.2, 0.3, 0.4, 0.9], [1.0, 2.0, 3.0, 4.0, math.nan])
    assert (found.n, found.pearson, found.pearson_low) == (4, 1.0, 1.0)
