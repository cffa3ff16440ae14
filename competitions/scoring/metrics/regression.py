"""Errors of predicted numbers. Arrays are (n,) and finite unless said otherwise; units are those of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from competitions.tables.arrays import whole

_MAX_SCANNED_GROUPS = 16
"""Up to this number of groups, searching the rows of each group is faster than sorting all rows."""
_MIN_LONG_GROUPS = 1 << 15
"""The numbers of as many groups do not fit 16 bits."""


def rmse(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Root mean squared error; lower is better.

    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    return float(np.sqrt(np.mean((y - p) ** 2)))


def mean_columnwise_rmse(truth: ArrayLike, predicted: ArrayLike) -> float:
    """MCRMSE: mean of `rmse` over the columns of two matrices (n, k); lower is better.

    >>> mean_columnwise_rmse([[1.0, 0.0], [1.0, 0.0]], [[1.0, 2.0], [1.0, 2.0]])
    1.0
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    return float(np.mean(np.sqrt(np.mean((y - p) ** 2, axis=0))))


def rmsle(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Root mean squared error of ln(1 + x), x >= 0; lower is better.

    The arrays keep their types: NumPy computes the logarithm of booleans in half precision.

    >>> round(rmsle([0.0, 1.0], [0.0, 3.0]), 6)
    0.490129
    """
    return rmse(np.log1p(np.asarray(truth)), np.log1p(np.asarray(predicted)))


def mae(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Mean absolute difference; lower is better.

    >>> mae([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    return float(np.mean(np.abs(y - p)))


def group_mean_log_mae(truth: ArrayLike, predicted: ArrayLike, groups: ArrayLike, floor: float = 0.0) -> float:
    """Mean over groups of ln(max(MAE within the group, floor)); lower is better.

    The result is minus infinity if a group has no error, unless there is a floor.

    >>> round(group_mean_log_mae([1.0, 2.0, 3.0], [2.0, 3.0, 3.5], ["a", "a", "b"]), 6)
    -0.346574
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    errors = y - p
    np.abs(errors, out=errors)
    codes, count = _numbered(groups)
    with np.errstate(divide="ignore", over="ignore"):
        means = [np.mean(part) for part in _parts(errors, codes, count)]  # pandas' mean is NaN if the sum overflows
        return float(np.mean(np.log(np.maximum(means, floor))))


def _parts(values: NDArray[Any], codes: NDArray[Any], count: int) -> list[NDArray[Any]]:
    """The values of each of `count` groups, in the given order, without values that have a negative code."""
    if count <= _MAX_SCANNED_GROUPS:
        short_codes = codes.astype(np.int8)
        return [values[np.flatnonzero(short_codes == code)] for code in range(count)]
    if len(codes) and codes.min() < 0:
        values, codes = values[codes >= 0], codes[codes >= 0]
    # NumPy sorts numbers of 16 bits in linear time.
    small_codes = codes.astype(np.int16, copy=False) if count < _MIN_LONG_GROUPS else codes
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(values[np.argsort(small_codes, kind="stable")], ends[:-1]) if count else []


def _numbered(groups: ArrayLike) -> tuple[NDArray[Any], int]:
    """The number of each row's group, in ascending order of groups, -1 for no group, and the number of groups."""
    if isinstance(groups, pd.Series) and isinstance(groups.dtype, pd.ArrowDtype):
        column: Any = groups.array
        encoded = whole(column.__arrow_array__()).dictionary_encode()  # `factorize` takes twice the time
        names = encoded.dictionary.to_pylist()
        ranks = np.empty(len(names) + 1, np.int16 if len(names) < _MIN_LONG_GROUPS else np.intp)
        ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        ranks[-1] = -1
        return ranks[encoded.indices.fill_null(len(names)).to_numpy()], len(names)
    codes, keys = pd.factorize(groups if isinstance(groups, pd.Series) else np.asarray(groups), sort=True)
    return codes, len(keys)


def laplace_log_likelihood(truth: ArrayLike, predicted: ArrayLike, confidence: ArrayLike) -> float:
    """Modified Laplace log likelihood (OSIC, millilitres); higher is better, at most -ln(70 sqrt 2).

    sd = max(confidence, 70), delta = min(|truth - predicted|, 1000); mean of -sqrt(2) delta / sd - ln(sqrt(2) sd).
    NaN propagates; no rows give NaN.

    >>> round(laplace_log_likelihood([2000.0], [2000.0], [70.0]), 6)
    -4.595069
    """
    y, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not y.size:
        return float("nan")
    sd = np.maximum(np.asarray(confidence, dtype=np.float64), 70)
    delta = np.minimum(np.abs(y - p), 1000)
    return float(np.mean(-np.sqrt(2) * delta / sd - np.log(np.sqrt(2) * sd)))
