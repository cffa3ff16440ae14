"""Correlations of predicted numbers, which are arrays (n,). They need SciPy, which other graders do not import."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import norm  # unlike NumPy's it does not overflow

from competitions.scoring.metrics.ranks import average_ranks

_BLAS = 10_000  # products that OpenBLAS computes in one thread


def pearson(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Pearson's correlation, in [-1, 1]; NaN if either side is constant, holds NaN or infinity, or has no finite mean.

    >>> round(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 9)
    1.0
    """
    x, y = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not x.size or (x == x[0]).all() or (y == y[0]).all() or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = x - x.mean(), y - y.mean()
        x, y = x / norm(x, check_finite=False), y / norm(y, check_finite=False)
        # OpenBLAS shares longer products among its threads: the sum then depends on how many there are, and they use
        # processor time while they wait for the next one.
        parts = [x[start : start + _BLAS] @ y[start : start + _BLAS] for start in range(0, len(x), _BLAS)]
        return float(np.clip(np.sum(parts), -1, 1))


def spearman(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the average ranks; NaN if either side is constant or holds NaN.

    Text is ranked alphabetically.

    >>> round(spearman([1.0, 2.0, 3.0], [10.0, 100.0, 1000.0]), 9)
    1.0
    """
    x, y = np.asarray(truth), np.asarray(predicted)
    if pd.isna(x).any() or pd.isna(y).any():
        return float("nan")
    return pearson(average_ranks(x), average_ranks(y))
