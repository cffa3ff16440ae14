"""Correlations of predicted numbers, which are arrays (n,). They need SciPy, which other graders do not import."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import norm  # unlike NumPy's it does not overflow

from competitions.scoring.metrics.ranks import average_ranks, average_ranks_of_rows

_BLAS_PRODUCTS = 10_000  # products that OpenBLAS computes in one thread


def pearson(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Pearson's correlation, in [-1, 1]; NaN if either side is constant, holds NaN or infinity, or has no finite mean.

    >>> round(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 9)
    1.0
    """
    x, y = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not x.size or (x == x[0]).all() or (y == y[0]).all() or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    return _correlation(x, y)


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


def spearmans(truth: pd.DataFrame, predicted: pd.DataFrame) -> list[float]:
    """`spearman` of each column of a table and the column of the same name in another; floats are ranked at once.

    >>> table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, 0.5, 0.5]})
    >>> [round(correlation, 9) for correlation in spearmans(table, table)]
    [1.0, nan]
    """
    names = list(truth.columns)
    if not len(truth) or not all((frame.dtypes == np.float64).all() for frame in (truth, predicted[names])):
        return [spearman(truth[name], predicted[name]) for name in names]
    x, y = (np.ascontiguousarray(frame.to_numpy().T) for frame in (truth, predicted[names]))
    missing = np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1)
    x, y = average_ranks_of_rows(x), average_ranks_of_rows(y)
    return [float("nan") if is_missing else _correlation(x[row], y[row]) for row, is_missing in enumerate(missing)]


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson's correlation of finite numbers; NaN if all numbers of one side equal their mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = x - x.mean(), y - y.mean()
        x, y = x / norm(x, check_finite=False), y / norm(y, check_finite=False)
        # OpenBLAS divides longer products among its threads: the sum then depends on the number of threads, which also
        # use processor time while they wait.
        parts = [
            x[start : start + _BLAS_PRODUCTS] @ y[start : start + _BLAS_PRODUCTS]
            for start in range(0, len(x), _BLAS_PRODUCTS)
        ]
        return float(np.clip(np.sum(parts), -1, 1))
