"""Losses of probabilities against scikit-learn and literal sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn import metrics as sk

from competitions.scoring.metrics.probability import EPS, kl_divergence, log_loss, log_loss_terms, probabilistic_f1


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_binary_log_loss(rng: np.random.Generator) -> None:
    truth, p = rng.integers(0, 2, 300), rng.random(300)
    p[:4], p[4:8] = 0, 1
    assert log_loss(truth, p) == pytest.approx(sk.log_loss(truth, p), rel=1e-12)
    assert log_loss(truth.astype(bool), p > 0.5) == pytest.approx(
        sk.log_loss(truth, (p > 0.5).astype(float)), rel=1e-12
    )


def test_multiclass_log_loss(rng: np.random.Generator) -> None:
    truth, p = np.eye(4)[rng.integers(0, 4, 300)], rng.dirichlet(np.ones(4), 300)
    p[0] = [0, 0, 0, 1]
    assert log_loss(truth, p) == pytest.approx(sk.log_loss(truth, p), rel=1e-12)
    for y in (truth, 2 * truth, np.roll(truth, 1, axis=0) + truth):  # also where a row has more than one class
        assert log_loss(y, p) == np.mean(-xlogy(y, np.clip(p, EPS, 1 - EPS)).sum(axis=1)), "to the last bit"


def test_the_clip_bounds_the_loss() -> None:
    assert EPS == 2.220446049250313e-16
    assert log_loss([[1, 0]], [[0, 1]]) == pytest.approx(36.04365338911715, rel=1e-15)
    assert log_loss([1, 0], [0, 1]) == pytest.approx(36.04365338911715, rel=1e-15)
    assert log_loss([[1, 0]], [[1, 0]]) == pytest.approx(2.2204460492503136e-16, rel=1e-15)


def test_rows_are_not_rescaled() -> None:
    assert log_loss([[1, 0]], [[0.5, 0.1]]) == pytest.approx(math.log(2))


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="shape"):
        log_loss([[1, 0]], [1.0])


def test_log_loss_terms_with_another_clip() -> None:
    assert log_loss_terms([1.0, 0.0], [0.0, 1.0], eps=1e-15) == pytest.approx(
        [-math.log(1e-15), -math.log(1 - (1 - 1e-15))]
    )


def test_kl_divergence(rng: np.random.Generator) -> None:
    y, p = rng.dirichlet(np.ones(6), 50), rng.dirichlet(np.ones(6), 50)
    y[y < 0.05] = 0
    p[0, 0], p[1, 1] = 0.0, 1.0
    rows = []
    for true, guess in zip(y, p, strict=True):
        clipped = [min(max(q, 1e-15), 1 - 1e-15) for q in guess]
        rows.append(sum(t * math.log(t / q) for t, q in zip(true, clipped, strict=True) if t))
    assert kl_divergence(y, p) == pytest.approx(np.mean(rows), rel=1e-12)


def test_kl_divergence_of_gaps_and_zeros() -> None:
    assert kl_divergence([[0.5, 0.5]], [[np.nan, 0.5]]) == 0
    assert kl_divergence([[0.5, 0.5]], [[0.0, 1.0]], eps=None) == np.inf


def test_probabilistic_f1(rng: np.random.Generator) -> None:
    y, p = rng.integers(0, 2, 100), rng.uniform(-0.2, 1.2, 100)
    q = [min(max(x, 0), 1) for x in p]
    hits, false = sum(x for x, t in zip(q, y, strict=True) if t), sum(x for x, t in zip(q, y, strict=True) if not t)
    precision, recall = hits / (hits + false), hits / y.sum()
    assert probabilistic_f1(y, p) == pytest.approx(2 * precision * recall / (precision + recall), rel=1e-12)
    hard = p > 0.5
    assert probabilistic_f1(y, hard) == pytest.approx(sk.f1_score(y, hard), rel=1e-12)


@pytest.mark.parametrize("p", [[0.0, 0.0], [0.0, 0.7], [np.nan, 0.5], [-1.0, -2.0]])
def test_probabilistic_f1_is_zero_where_undefined(p: list[float]) -> None:
    assert probabilistic_f1([1, 0], p) == 0
