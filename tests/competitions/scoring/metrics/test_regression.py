"""Errors of numbers against scikit-learn and literal loops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import metrics as sk

from competitions.scoring.metrics.regression import (
    group_mean_log_mae,
    laplace_log_likelihood,
    mae,
    mean_columnwise_rmse,
    rmse,
    rmsle,
)


def families(seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    rng = np.random.default_rng(seed)
    truth = rng.gamma(2, 3, 200)
    yield "random", truth, rng.gamma(2, 3, 200)
    yield "close", truth, truth + rng.normal(0, 1e-6, 200).clip(-1e-6)
    yield "perfect", truth, truth
    yield "constant", truth, np.full(200, 4.0)
    yield "ties", truth, rng.integers(0, 4, 200)
    yield "large", truth * 1e12, truth * 1e12 + rng.random(200)


CASES = pytest.mark.parametrize(("truth", "predicted"), [pytest.param(*case[1:], id=case[0]) for case in families()])


@CASES
def test_against_scikit_learn(truth: Any, predicted: Any) -> None:
    assert rmse(truth, predicted) == pytest.approx(sk.root_mean_squared_error(truth, predicted), rel=1e-12)
    assert mae(truth, predicted) == pytest.approx(sk.mean_absolute_error(truth, predicted), rel=1e-12)
    expected = sk.root_mean_squared_log_error(truth, np.abs(predicted))
    assert rmsle(truth, np.abs(predicted)) == pytest.approx(expected, rel=1e-12)


def test_mean_columnwise_rmse() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.random((50, 3)), rng.random((50, 3))
    assert mean_columnwise_rmse(truth, predicted) == pytest.approx(
        sk.root_mean_squared_error(truth, predicted), rel=1e-12
    )


def test_rmsle_takes_booleans_in_half_precision() -> None:
    assert rmsle(np.array([0.0]), np.array([True])) == 0.693359375


def test_group_mean_log_mae() -> None:
    rng = np.random.default_rng(0)
    truth, predicted, groups = rng.random(60), rng.random(60), rng.choice(["1JHC", "2JHN", "3JHH"], 60)
    logs = [math.log(sk.mean_absolute_error(truth[groups == g], predicted[groups == g])) for g in np.unique(groups)]
    assert group_mean_log_mae(truth, predicted, groups) == pytest.approx(np.mean(logs), rel=1e-12)
    assert group_mean_log_mae(truth, truth, groups) == -np.inf
    assert group_mean_log_mae([1.0, 2.0], [1e308, 1e308], ["a", "a"]) == np.inf
    assert group_mean_log_mae(truth, truth, groups, 1e-9) == pytest.approx(np.log(1e-9))
    assert group_mean_log_mae(pd.Series(truth), predicted, pd.Series(groups)) == pytest.approx(np.mean(logs), rel=1e-12)


@pytest.mark.parametrize("count", [1, 16, 17, 200])
def test_group_mean_log_mae_of_few_and_many_groups(count: int) -> None:
    rng = np.random.default_rng(count)
    names = pd.Series(np.append(np.arange(count), rng.integers(0, count, 500))).map("{:03}".format)
    truth, predicted = rng.random(len(names)), rng.random(len(names))
    errors = pd.Series(np.abs(truth - predicted))
    logs = [math.log(np.mean(errors[names == name].to_numpy())) for name in sorted(set(names))]
    for kind in ("object", pd.ArrowDtype(pa.string())):
        assert group_mean_log_mae(truth, predicted, names.astype(kind)) == np.mean(logs)


def test_group_mean_log_mae_of_arrow_columns() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.random(60), rng.random(60)
    names = pd.Series(rng.choice(["z", "ü", "a", "\U0001f600"], 60))
    arrow = pd.ArrowDtype(pa.string())
    assert group_mean_log_mae(truth, predicted, names.astype(arrow)) == group_mean_log_mae(truth, predicted, names)
    without = group_mean_log_mae(truth[1:], predicted[1:], names[1:])
    names[0] = None
    assert group_mean_log_mae(truth, predicted, names) == without
    assert group_mean_log_mae(truth, predicted, names.astype(arrow)) == without


def test_laplace_log_likelihood() -> None:
    rng = np.random.default_rng(0)
    truth, predicted, confidence = rng.normal(2500, 500, (3, 40))
    confidence /= 10
    rows = []
    for t, p, c in zip(truth, predicted, confidence, strict=True):
        sd, delta = max(c, 70), min(abs(t - p), 1000)
        rows.append(-math.sqrt(2) * delta / sd - math.log(math.sqrt(2) * sd))
    assert laplace_log_likelihood(truth, predicted, confidence) == pytest.approx(np.mean(rows), rel=1e-12)


def test_laplace_log_likelihood_at_the_limits() -> None:
    best = -math.log(70 * math.sqrt(2))
    assert laplace_log_likelihood([2000], [2000], [-5]) == pytest.approx(best)
    assert laplace_log_likelihood([2000], [np.inf], [70]) == pytest.approx(-math.sqrt(2) * 1000 / 70 + best)
    assert laplace_log_likelihood([2000], [2000], [np.inf]) == -np.inf
    assert np.isnan(laplace_log_likelihood([2000.0], [np.nan], [70]))
    assert np.isnan(laplace_log_likelihood([], [], []))


@pytest.mark.parametrize("metric", [rmse, mae])
def test_do_not_depend_on_the_order_of_rows(metric: Any) -> None:
    for _, truth, predicted in families():
        order = np.random.default_rng(1).permutation(len(truth))
        assert metric(truth[order], predicted[order]) == pytest.approx(metric(truth, predicted), rel=1e-9, nan_ok=True)
