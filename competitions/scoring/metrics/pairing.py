"""Pairs of predicted and true objects, and which pairs are matches, computed on arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from competitions.tables.arrays import ordered

Numbers = NDArray[np.int64]
_BATCH_PAIRS = 1 << 15  # pairs yielded at a time, so that intermediate results stay in the processor's cache
_MAX_ROUNDS = 20


def pairs_of_equal(a: Numbers, b: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield positions (i, j) of all pairs with a[i] == b[j], in order of i, then of j; all pairs of an i together.

    >>> [(i.tolist(), j.tolist()) for i, j in pairs_of_equal(np.array([7, 5, 7]), np.array([5, 7, 7]))]
    [([0, 0, 1, 2, 2], [1, 2, 0, 1, 2])]
    """
    order, ascending = ordered(b)
    first_matches, ends_of_matches = (np.searchsorted(ascending, a, side=side) for side in ("left", "right"))
    counts = ends_of_matches - first_matches
    ends = np.cumsum(counts)
    start = 0
    while start < len(a):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _BATCH_PAIRS, side="right")))
        row_counts = counts[start:stop]
        i = np.repeat(np.arange(start, stop), row_counts)
        if len(i):
            offsets = first_matches[start:stop] - np.cumsum(row_counts) + row_counts
            yield i, order[np.arange(len(i)) + np.repeat(offsets, row_counts)]
        start = stop


def first_come(a: Numbers, b: Numbers) -> NDArray[np.bool_]:
    """Which of the pairs (a[k], b[k]) are matched if each, in the given order, is matched when both sides are free.

    Each round matches all pairs that come before every other open pair of either side. The few pairs that are left
    after some rounds, in long chains, are decided one by one.

    >>> first_come(np.array([0, 0, 1, 1]), np.array([5, 6, 5, 6]))
    array([ True, False, False,  True])
    """
    is_matched = np.zeros(len(a), dtype=bool)
    _, a = np.unique(a, return_inverse=True)
    _, b = np.unique(b, return_inverse=True)
    open_pairs = np.arange(len(a))
    for _ in range(_MAX_ROUNDS):
        if not len(open_pairs):
            return is_matched
        i, j = a[open_pairs], b[open_pairs]
        first_open = np.full((2, len(a)), len(a))
        np.minimum.at(first_open[0], i, open_pairs)
        np.minimum.at(first_open[1], j, open_pairs)
        chosen = (first_open[0][i] == open_pairs) & (first_open[1][j] == open_pairs)
        is_matched[open_pairs[chosen]] = True
        is_taken = np.zeros((2, len(a)), dtype=bool)
        is_taken[0][i[chosen]], is_taken[1][j[chosen]] = True, True
        open_pairs = open_pairs[~(is_taken[0][i] | is_taken[1][j])]
    used_a, used_b = set[int](), set[int]()
    for pair, i, j in zip(open_pairs.tolist(), a[open_pairs].tolist(), b[open_pairs].tolist(), strict=True):
        if i not in used_a and j not in used_b:
            is_matched[pair] = True
            used_a.add(i)
            used_b.add(j)
    return is_matched
