"""Losses of predicted probabilities; lower is better. y and p are float64 arrays of equal shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

EPS = float(np.finfo(np.float64).eps)  # the clip of scikit-learn's log_loss


def log_loss_terms(truth: ArrayLike, predicted: ArrayLike, eps: float = EPS) -> NDArray[np.float64]:
    """-(y ln p + (1 - y) ln(1 - p)) of each cell, p clipped to [eps, 1 - eps]. Any shape.

    >>> log_loss_terms([1, 0], [0.5, 0.5]).round(6)
    array([0.693147, 0.693147])
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    p = np.clip(p, eps, 1 - eps)
    return -(xlogy(y, p) + xlogy(1 - y, 1 - p))


def log_loss(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Mean log loss as in scikit-learn 1.5's `log_loss`: clipped to [eps, 1 - eps], eps = 2.2e-16, without rescaling.

    Two classes: `truth` (n,) of 0 and 1, `predicted` (n,) the probability of 1. Several: both (n, k), `truth` with a 1
    for the true class, and the loss of a row is -sum_j y_ij ln p_ij.

    >>> round(log_loss([1, 0, 1], [0.9, 0.2, 0.7]), 6)
    0.228393
    >>> round(log_loss([[1, 0, 0], [0, 0, 1]], [[0.5, 0.5, 0], [0.2, 0.2, 0.6]]), 6)
    0.601986
    >>> log_loss([0, 1], [0, 1])  # never quite zero
    2.2204460492503136e-16
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if y.shape != p.shape:
        raise ValueError(f"truth {y.shape} and predictions {p.shape} differ in shape")
    if y.ndim == 1:
        return float(np.mean(log_loss_terms(y, p)))
    rows, classes = np.nonzero(y)
    if len(rows) == len(y) and (rows == np.arange(len(y))).all() and not np.isnan(p).any():
        # One class a row: the terms of the others are 0, which changes no sum.
        return float(np.mean(-xlogy(y[rows, classes], np.clip(p[rows, classes], EPS, 1 - EPS))))
    return float(np.mean(-xlogy(y, np.clip(p, EPS, 1 - EPS)).sum(axis=1)))


def kl_divergence(truth: ArrayLike, predicted: ArrayLike, eps: float | None = 1e-15) -> float:
    """Mean over rows of sum_j y_ij ln(y_ij / p_ij), p clipped to [eps, 1 - eps] (not at all if None), both (n, k).

    A cell with y = 0 adds nothing, nor does one with NaN. Without a clip p = 0 beside y > 0 gives infinity.

    >>> round(kl_divergence([[0.5, 0.5]], [[0.9, 0.1]]), 6)
    0.510826
    >>> kl_divergence([[1.0, 0.0]], [[0.0, 1.0]], eps=None)
    inf
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    clipped = p if eps is None else np.clip(p, eps, 1 - eps)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(y != 0, y * np.log(y / clipped), 0.0)
    return float(np.mean(np.nansum(terms, axis=1)))


def probabilistic_f1(truth: ArrayLike, predicted: ArrayLike) -> float:
    """F1 with probabilities for counts (Yacouby & Axman 2020); higher is better. Both (n,), p clipped to [0, 1].

    precision = sum(p y) / sum(p), recall = sum(p y) / sum(y); 0 where either is 0 or undefined, as with NaN.

    >>> round(probabilistic_f1([1, 0, 1], [0.9, 0.2, 0.7]), 6)
    0.842105
    >>> probabilistic_f1([1, 0], [0, 1])
    0.0
    """
    y, p = np.asarray(truth, dtype=np.float64), np.clip(np.asarray(predicted, dtype=np.float64), 0, 1)
    hits = float(p[y == 1].sum())
    with np.errstate(invalid="ignore"):
        precision, recall = np.float64(hits) / p.sum(), np.float64(hits) / (y == 1).sum()
    if not (precision > 0 and recall > 0):
        return 0.0
    return float(2 * precision * recall / (precision + recall))
