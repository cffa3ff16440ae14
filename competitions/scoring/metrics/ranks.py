"""Ranks of numbers, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def average_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """The rank of each value in ascending order, from 1, shape (n,); equal values share the mean of their ranks.

    Values are not NaN. Texts are ranked alphabetically.

    >>> average_ranks(np.array([0.5, 2.0, 0.5, 7.0]))
    array([1.5, 3. , 1.5, 4. ])
    """
    if values.dtype.kind not in "biuf":
        values = np.unique(values, return_inverse=True)[1]
    order = np.argsort(values)  # several times as fast as SciPy, which keeps the order of equal values
    ascending = values[order]
    starts = np.append(0, np.flatnonzero(ascending[1:] != ascending[:-1]) + 1) if len(values) else np.zeros(0, np.int64)
    sizes = np.diff(starts, append=len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(starts + (sizes + 1) / 2, sizes)
    return ranks


def average_ranks_of_rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`average_ranks` of each row of a matrix (k, n), computed for all rows at once.

    >>> average_ranks_of_rows(np.array([[0.5, 2.0, 0.5], [3.0, 2.0, 1.0]]))
    array([[1.5, 3. , 1.5],
           [3. , 2. , 1. ]])
    """
    order = np.argsort(values, axis=1)
    ascending = np.take_along_axis(values, order, axis=1)
    is_start = np.ones(values.shape, bool)
    np.not_equal(ascending[:, 1:], ascending[:, :-1], out=is_start[:, 1:])
    starts = np.flatnonzero(is_start)
    sizes = np.diff(starts, append=values.size)
    ranks = np.empty(values.shape)
    run_ranks = starts % max(values.shape[1], 1) + (sizes + 1) / 2
    np.put_along_axis(ranks, order, np.repeat(run_ranks, sizes).reshape(values.shape), axis=1)
    return ranks
