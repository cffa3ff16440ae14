"""Metrics that depend on the order of scores; higher is better.

Truth is 0 or 1 (or boolean), scores are any finite numbers. If the truth has one class only, the area under the curve
is undefined, which raises ValueError.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from competitions.scoring.metrics.items import Items, joint_keys, keys_of_known
from competitions.scoring.metrics.ranks import average_ranks
from competitions.tables.arrays import ordered

_SHORT = 255  # items of a row whose ranks are bytes
_COMPARED = 1 << 20  # scores compared at a time


def roc_auc(truth: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve: the share of pairs (positive, negative) in the right order, ties counting half.

    By ranks (Mann & Whitney): (R - p (p + 1) / 2) / (p n), R the sum of the average ranks of the p positives.
    Both of shape (n,). Raises ValueError for one class, or for scores that are not finite.

    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> roc_auc([0, 1], [0.5, 0.5])
    0.5
    """
    y, s = np.asarray(truth) == 1, np.asarray(scores, dtype=np.float64)
    if y.shape != s.shape or y.ndim != 1:
        raise ValueError(f"truth {y.shape} and scores {s.shape} must be vectors of one length")
    if not np.isfinite(s).all():
        raise ValueError("scores must be finite")
    positives = int(np.count_nonzero(y))
    negatives = len(y) - positives
    if not positives or not negatives:
        raise ValueError("the truth holds one class only: the area under the ROC curve is undefined")
    return float((average_ranks(s)[y].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def mean_columnwise_roc_auc(truth: ArrayLike, scores: ArrayLike) -> float:
    """Mean of `roc_auc` over the columns of two matrices (n, k).

    >>> mean_columnwise_roc_auc([[0, 1], [1, 0]], [[0.2, 0.5], [0.9, 0.5]])
    0.75
    """
    y, s = np.asarray(truth), np.asarray(scores, dtype=np.float64)
    if y.shape != s.shape or y.ndim != 2:
        raise ValueError(f"truth {y.shape} and scores {s.shape} must be matrices of one shape")
    return float(np.mean([roc_auc(y[:, j], s[:, j]) for j in range(y.shape[1])]))


def power_mean(values: ArrayLike, power: float) -> float:
    """(mean of v^p)^(1/p) of an array of shape (n,); with a negative power the smallest values dominate, and 0 gives 0.

    Raises ValueError without values.

    >>> power_mean([1.0, 0.5], -1)
    0.6666666666666666
    """
    v = np.asarray(values, dtype=np.float64)
    if not v.size:
        raise ValueError("the mean of no values is undefined")
    with np.errstate(divide="ignore"):
        return float((np.cumsum(v**power)[-1] / len(v)) ** (1 / power))  # one after the other, as published


def label_ranking_average_precision(truth: ArrayLike, scores: ArrayLike) -> float:
    """Label-weighted label-ranking average precision (lwlrap, DCASE 2019), both (n, k).

    For each true label of a row: the share of true labels among those ranked as high or higher (ties take the largest
    rank); mean over all true labels. A row whose labels are all true counts 1 in each.
    Raises ValueError without a true label.

    >>> label_ranking_average_precision([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1], [1, 0.2, 0.1]])
    0.41666666666666663
    """
    y, s = np.asarray(truth) > 0, np.asarray(scores, dtype=np.float64)
    weights = y.sum(axis=1)
    y, s, weights = y[weights > 0], s[weights > 0], weights[weights > 0]
    if not len(y):
        raise ValueError("without a true label the average precision is undefined")
    shares = np.where(np.isnan(s), np.nan, 0.0)
    rows, labels = np.nonzero(y)
    some = max(1, _COMPARED // s.shape[1])
    for start in range(0, len(rows), some):  # few labels are true, so that comparing is faster than sorting all
        row, label = rows[start : start + some], labels[start : start + some]
        as_high = s[row] >= s[row, label][:, None]
        with np.errstate(invalid="ignore"):
            shares[row, label] = (as_high & y[row]).sum(axis=1) / as_high.sum(axis=1)
    means = shares.sum(axis=1) / weights
    return float(np.average(means, weights=weights))


def average_precision(truth: ArrayLike, scores: ArrayLike) -> float:
    """Sum over thresholds of (recall difference) x precision, equal scores together, as in scikit-learn. Both (n,).

    Raises ValueError without a positive, or for scores that are not finite.

    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 6)
    0.833333
    """
    y, s = np.asarray(truth) == 1, np.asarray(scores, dtype=np.float64)
    if not np.isfinite(s).all():
        raise ValueError("scores must be finite")
    if not y.any():
        raise ValueError("without a positive the average precision is undefined")
    order = np.argsort(-s)  # not that of equal scores, which are counted together
    last = np.append(np.flatnonzero(np.diff(s[order])), len(s) - 1)  # the last of each run of equal scores
    hits = np.cumsum(y[order])[last]
    return float(np.sum(np.diff(hits, prepend=0) / hits[-1] * (hits / (last + 1))))


def mean_average_precision_at_k(
    truth: Sequence[Collection[str]] | Items, ranked: Sequence[Sequence[str]] | Items, k: int
) -> float:
    """MAP@k: mean over rows of sum_i [item i is true and new] (hits so far) / i, divided by min(true items, k).

    `truth` holds the distinct true items of each row, `ranked` the guesses, best first; those after the k-th are
    ignored, a repeated one takes up a rank. Pairs the rows by position and stops at the shorter list.

    >>> mean_average_precision_at_k([{"a"}, {"b"}], [["x", "a"], ["b", "b"]], 5)
    0.75
    """
    true, guesses = Items.of(truth), Items.of(ranked)
    count = min(len(true.sizes), len(guesses.sizes))
    if not count:
        return float("nan")
    true_keys, (places, rows, keys) = keys_of_known(true, guesses)
    true_keys, first = np.unique(true_keys[: int(true.sizes[:count].sum())], return_index=True)
    sizes = np.minimum(np.bincount(true.rows[first], minlength=count), k)
    if not sizes.all():
        raise ZeroDivisionError("a row has no true item")
    rank = places - (np.cumsum(guesses.sizes) - guesses.sizes)[rows] + 1
    hits = np.flatnonzero((rank <= k) & (rows < count))
    place = np.minimum(np.searchsorted(true_keys, keys[hits]), len(true_keys) - 1)
    hits = hits[true_keys[place] == keys[hits]]
    hits = hits[np.sort(np.unique(keys[hits], return_index=True)[1])]  # the first of each
    row = rows[hits]
    before = np.arange(len(row)) - np.searchsorted(row, row)
    return float(np.mean(np.bincount(row, (before + 1) / rank[hits], minlength=count) / sizes))


def kendall_tau_orders(truth: Sequence[Sequence[str]] | Items, predicted: Sequence[Sequence[str]] | Items) -> float:
    """Kendall's tau of many orders at once (AI4Code): 1 - 4 sum(inversions) / sum(n (n - 1)).

    Each pair of rows holds the same n distinct items. Raises ValueError for a true item that is not in the prediction,
    and if no row has two items.

    >>> kendall_tau_orders([["a", "b", "c"]], [["a", "c", "b"]])
    0.33333333333333337
    """
    true, guesses = Items.of(truth), Items.of(predicted)
    if len(true.sizes) != len(guesses.sizes):
        raise ValueError(f"{len(true.sizes)} and {len(guesses.sizes)} rows")
    where = _places(true, guesses)
    starts = np.cumsum(guesses.sizes) - guesses.sizes
    ranks = where - np.repeat(starts, true.sizes)
    pairs = int((true.sizes * (true.sizes - 1)).sum())
    if not pairs:
        raise ValueError("the correlation of orders with fewer than two items is undefined")
    return 1 - 4 * _inversions(ranks, true.sizes) / pairs


def _places(true: Items, guesses: Items) -> NDArray[np.int64]:
    """The place of each true item among all guesses, in its row. Raises ValueError for a missing one."""
    true_keys, keys = joint_keys(true, guesses)
    order, ascending = ordered(keys)
    place = np.searchsorted(ascending, true_keys, side="right") - 1
    found = ascending[np.maximum(place, 0)] == true_keys if len(keys) else np.zeros(len(true_keys), bool)
    if not found.all():
        raise ValueError(f"{str(true.values[int(np.argmin(found))])!r} is missing")
    return order[place]


def _inversions(ranks: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    """Pairs in the wrong order within rows of these sizes, each of which holds the ranks 0, 1, ... in some order.

    Ranks beyond the size of the row, if items are missing or repeated, are closed up first. Short rows of one size are
    compared as the columns of a matrix of bytes, many pairs at a time, long ones bit by bit.
    """
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    beyond = ranks >= np.repeat(sizes, sizes)
    if beyond.any() or (np.bincount(ranks + start, minlength=len(ranks)) != 1).any():
        order = np.lexsort([ranks, start])
        ranks = ranks.copy()
        ranks[order] = np.arange(len(ranks)) - start[order]
    short = sizes <= _SHORT
    long = np.repeat(~short, sizes)
    inversions = _inversions_by_bits(ranks[long], sizes[~short]) if long.any() else 0
    first = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[short]).tolist():
        starts = first[sizes == size]
        matrix = ranks[starts + np.arange(size)[:, None]].astype(np.uint8)
        for shift in range(1, size):
            inversions += int(np.count_nonzero(matrix[:-shift] > matrix[shift:]))
    return inversions


def _inversions_by_bits(ranks: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    """Like `_inversions`, in a time that grows with n log n for rows of n items.

    From the highest bit: ranks that share the higher bits lie together, in their original order. A pair is counted
    where the earlier one has a 1 and the later one a 0; then the zeros of each group move before its ones.
    """
    kind: Any = np.int32 if len(ranks) < 1 << 30 else np.int64  # the time is that of moving memory
    start = np.repeat(np.cumsum(sizes) - sizes, sizes).astype(kind)
    index = np.arange(len(ranks), dtype=kind)
    ranks = np.asarray(ranks, dtype=kind)
    inversions = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        ones = (ranks >> bit) & 1
        before = np.cumsum(ones, dtype=kind) - ones
        group = start + (ranks >> (bit + 1) << (bit + 1))
        ones_before = before - before[group]
        inversions += int(ones_before[ones == 0].sum(dtype=np.int64))
        moved = np.empty_like(ranks)
        moved[np.where(ones == 1, group + (1 << bit) + ones_before, index - ones_before)] = ranks
        ranks = moved
    return inversions
