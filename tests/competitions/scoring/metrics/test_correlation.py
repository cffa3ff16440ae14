"""Correlations against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from competitions.scoring.metrics.correlation import pearson, spearman, spearmans
from tests.competitions.scoring.metrics.test_regression import CASES, families


@pytest.mark.filterwarnings("ignore:An input array is constant")
@CASES
def test_correlations(truth: Any, predicted: Any) -> None:
    close: dict[str, Any] = {"rel": 1e-9, "nan_ok": True}
    assert pearson(truth, predicted) == pytest.approx(stats.pearsonr(truth, predicted)[0], **close)
    assert spearman(truth, predicted) == pytest.approx(stats.spearmanr(truth, predicted)[0], **close)


@pytest.mark.parametrize("rows", [9_999, 10_000, 10_001, 35_000])
def test_correlation_of_many_numbers(rows: int) -> None:
    truth, predicted = np.random.default_rng(rows).random((2, rows))
    predicted += truth
    assert pearson(truth, predicted) == pytest.approx(stats.pearsonr(truth, predicted)[0], rel=1e-12)


def test_correlation_of_huge_numbers() -> None:
    truth, predicted = [0.0, 1.0, 2.0, 4.0], [-3e200, 1e100, 5e200, 9e210]
    assert pearson(truth, predicted) == pytest.approx(stats.pearsonr(truth, predicted)[0], rel=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("predicted", [[1e308, 1e308, 1e308, 0.5], [1e308, 0.0, -1e308, -1.5e308]])
def test_correlation_of_numbers_that_overflow(predicted: list[float]) -> None:
    truth = [0.0, 1.0, 2.0, 4.0]
    assert pearson(truth, predicted) == pytest.approx(stats.pearsonr(truth, predicted)[0], nan_ok=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_pearson_of_what_is_not_finite_is_nan(bad: float) -> None:
    assert np.isnan(pearson([1.0, 2.0, 3.0], [1.0, bad, 2.0]))


def test_spearman_of_text_and_gaps() -> None:
    assert spearman(pd.Series([1, 2, 3]), pd.Series(["a", "b", "c"])) == pytest.approx(1)
    assert spearman([1, 2, 3], pd.Series(["10", "9", "8.5"])) == pytest.approx(stats.spearmanr([1, 2, 3], [0, 2, 1])[0])
    assert np.isnan(spearman([1, 2, 3], [1, np.nan, 2]))
    assert np.isnan(spearman([1, 2, 3], pd.Series(["a", None, "c"])))
    assert np.isnan(spearman([1, 2, 3], ["a", "a", "a"]))


@pytest.mark.parametrize("metric", [pearson, spearman])
def test_do_not_depend_on_the_order_of_rows(metric: Any) -> None:
    for _, truth, predicted in families():
        order = np.random.default_rng(1).permutation(len(truth))
        assert metric(truth[order], predicted[order]) == pytest.approx(metric(truth, predicted), rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 500, 10_001])
@pytest.mark.parametrize("odd", ["", "nan", "text", "whole", "order"])
def test_spearmans_are_those_of_each_column_to_the_last_bit(rows: int, odd: str) -> None:
    rng = np.random.default_rng(rows)
    kinds = [rng.random, lambda n: rng.integers(0, 4, n) / 3, np.zeros, lambda n: rng.choice([0.0, -0.0, np.inf], n)]
    truth, predicted = (
        pd.DataFrame({f"{place} {kind}": kinds[kind](rows) for place in range(3) for kind in rng.permutation(4)})
        for _ in range(2)
    )
    predicted = predicted.set_axis(truth.columns, axis=1).copy()
    if odd == "nan" and rows:
        predicted.iloc[-1, 1] = truth.iloc[0, 3] = np.nan
    if odd == "text":
        predicted["0 1"] = predicted["0 1"].astype(str)
    if odd == "whole":
        predicted["0 1"] = rng.integers(2**53, 2**53 + 3, rows)
    if odd == "order":
        predicted = predicted[predicted.columns[::-1]]
    expected = [spearman(truth[name], predicted[name]) for name in truth]
    np.testing.assert_array_equal(spearmans(truth, predicted), expected)
