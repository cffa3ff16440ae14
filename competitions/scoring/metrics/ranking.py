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

_MAX_SHORT_ITEMS = 255  # the ranks of so many items of a row fit into bytes
_BATCH_SCORES = 1 << 20  # scores compared at a time


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
        return float((np.cumsum(v**power)[-1] / len(v)) ** (1 / power))  # summed in sequence, as published


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
    step = max(1, _BATCH_SCORES // s.shape[1])
    for start in range(0, len(rows), step):  # few labels are true, so comparing is faster than sorting all
        row, label = rows[start : start + step], labels[start : start + step]
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
    order = np.argsort(-s)  # the order of equal scores does not matter: they are counted together
    ends_of_runs = np.append(np.flatnonzero(np.diff(s[order])), len(s) - 1)  # the last of each run of equal scores
    hits = np.cumsum(y[order])[ends_of_runs]
    return float(np.sum(np.diff(hits, prepend=0) / hits[-1] * (hits / (ends_of_runs + 1))))


def mean_average_precision_at_k(
    truth: Sequence[Collection[str]] | Items, ranked: Sequence[Sequence[str]] | Items, k: int
) -> float:
    """MAP@k: mean over rows of sum_i [item i is true and new] (hits so far) / i, divided by min(true items, k).

    `truth` holds the distinct true items of each row, `ranked` the guesses, best first. Guesses after the k-th are
    ignored; a repeated guess takes up a rank. Rows are paired by position up to the end of the shorter list.

    >>> mean_average_precision_at_k([{"a"}, {"b"}], [["x", "a"], ["b", "b"]], 5)
    0.75
    """
    true, guesses = Items.of(truth), Items.of(ranked)
    count = min(len(true.sizes), len(guesses.sizes))
    if not count:
        return float("nan")
    true_keys, (positions, rows, keys) = keys_of_known(true, guesses)
    true_keys, first_keys = np.unique(true_keys[: int(true.sizes[:count].sum())], return_index=True)
    sizes = np.minimum(np.bincount(true.rows[first_keys], minlength=count), k)
    if not sizes.all():
        raise ZeroDivisionError("a row has no true item")
    rank = positions - (np.cumsum(guesses.sizes) - guesses.sizes)[rows] + 1
    hits = np.flatnonzero((rank <= k) & (rows < count))
    key_positions = np.minimum(np.searchsorted(true_keys, keys[hits]), len(true_keys) - 1)
    hits = hits[true_keys[key_positions] == keys[hits]]
    hits = hits[np.sort(np.unique(keys[hits], return_index=True)[1])]  # the first of each
    row = rows[hits]
    earlier_hits = np.arange(len(row)) - np.searchsorted(row, row)
    return float(np.mean(np.bincount(row, (earlier_hits + 1) / rank[hits], minlength=count) / sizes))


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
    positions = _places(true, guesses)
    starts = np.cumsum(guesses.sizes) - guesses.sizes
    ranks = positions - np.repeat(starts, true.sizes)
    pairs = int((true.sizes * (true.sizes - 1)).sum())
    if not pairs:
        raise ValueError("the correlation of orders with fewer than two items is undefined")
    return 1 - 4 * _inversions(ranks, true.sizes) / pairs


def _places(true: Items, guesses: Items) -> NDArray[np.int64]:
    """The position of each true item among all guesses, in its row. Raises ValueError for a missing item."""
    true_keys, keys = joint_keys(true, guesses)
    order, ascending = ordered(keys)
    positions = np.searchsorted(ascending, true_keys, side="right") - 1
    is_found = ascending[np.maximum(positions, 0)] == true_keys if len(keys) else np.zeros(len(true_keys), bool)
    if not is_found.all():
        raise ValueError(f"{str(true.values[int(np.argmin(is_found))])!r} is missing")
    return order[positions]


def _inversions(ranks: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    """Pairs in the wrong order within rows of these sizes, each of which holds the ranks 0, 1, ... in some order.

    If items are missing or repeated, ranks are renumbered first. Short rows of one size are compared as the columns of
    a matrix of bytes, many pairs at a time, and long rows bit by bit.
    """
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    beyond = ranks >= np.repeat(sizes, sizes)
    if beyond.any() or (np.bincount(ranks + start, minlength=len(ranks)) != 1).any():
        order = np.lexsort([ranks, start])
        ranks = ranks.copy()
        ranks[order] = np.arange(len(ranks)) - start[order]
    is_short = sizes <= _MAX_SHORT_ITEMS
    in_long_rows = np.repeat(~is_short, sizes)
    inversions = _inversions_by_bits(ranks[in_long_rows], sizes[~is_short]) if in_long_rows.any() else 0
    row_starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[is_short]).tolist():
        starts = row_starts[sizes == size]
        matrix = ranks[starts + np.arange(size)[:, None]].astype(np.uint8)
        for shift in range(1, size):
            inversions += int(np.count_nonzero(matrix[:-shift] > matrix[shift:]))
    return inversions


def _inversions_by_bits(ranks: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    """Like `_inversions`, in a time that grows with n log n for rows of n items.

    It starts with the highest bit. Ranks that share the higher bits form a group, in their original order. A pair is
    counted if the earlier rank has a 1 and the later one a 0; then the zeros of each group move before its ones.
    """
    kind: Any = np.int32 if len(ranks) < 1 << 30 else np.int64  # smaller numbers move faster in memory
    start = np.repeat(np.cumsum(sizes) - sizes, sizes).astype(kind)
    index = np.arange(len(ranks), dtype=kind)
    ranks = np.asarray(ranks, dtype=kind)
    inversions = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        bits = (ranks >> bit) & 1
        ones_before = np.cumsum(bits, dtype=kind) - bits
        group = start + (ranks >> (bit + 1) << (bit + 1))
        ones_in_group = ones_before - ones_before[group]
        inversions += int(ones_in_group[bits == 0].sum(dtype=np.int64))
        moved = np.empty_like(ranks)
        moved[np.where(bits == 1, group + (1 << bit) + ones_in_group, index - ones_in_group)] = ranks
        ranks = moved
    return inversions
