"""Pairs of predicted and true objects, and which of them belong together, on arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from competitions.tables.arrays import ordered

Numbers = NDArray[np.int64]
_PAIRS = 1 << 15  # pairs made at a time, so that what is computed of them stays in the processor's cache
_ROUNDS = 20


def pairs_of_equal(a: Numbers, b: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield positions (i, j) of all pairs with a[i] == b[j], in order of i, then of j; all pairs of an i together.

    >>> [(i.tolist(), j.tolist()) for i, j in pairs_of_equal(np.array([7, 5, 7]), np.array([5, 7, 7]))]
    [([0, 0, 1, 2, 2], [1, 2, 0, 1, 2])]
    """
    order, ascending = ordered(b)
    first, last = (np.searchsorted(ascending, a, side=side) for side in ("left", "right"))
    counts = last - first
    ends = np.cumsum(counts)
    start = 0
    while start < len(a):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS, side="right")))
        some = counts[start:stop]
        i = np.repeat(np.arange(start, stop), some)
        if len(i):
            yield i, order[np.arange(len(i)) + np.repeat(first[start:stop] - np.cumsum(some) + some, some)]
        start = stop


def first_come(a: Numbers, b: Numbers) -> NDArray[np.bool_]:
    """Which of the pairs (a[k], b[k]) are made if each, in the given order, is made when both sides are still free.

    In each round all pairs are made that come before every other open pair of either side. The few that are left after
    some rounds, in long chains, are decided one by one.

    >>> first_come(np.array([0, 0, 1, 1]), np.array([5, 6, 5, 6]))
    array([ True, False, False,  True])
    """
    made = np.zeros(len(a), dtype=bool)
    _, a = np.unique(a, return_inverse=True)
    _, b = np.unique(b, return_inverse=True)
    open_pairs = np.arange(len(a))
    for _ in range(_ROUNDS):
        if not len(open_pairs):
            return made
        i, j = a[open_pairs], b[open_pairs]
        first = np.full((2, len(a)), len(a))
        np.minimum.at(first[0], i, open_pairs)
        np.minimum.at(first[1], j, open_pairs)
        chosen = (first[0][i] == open_pairs) & (first[1][j] == open_pairs)
        made[open_pairs[chosen]] = True
        taken = np.zeros((2, len(a)), dtype=bool)
        taken[0][i[chosen]], taken[1][j[chosen]] = True, True
        open_pairs = open_pairs[~(taken[0][i] | taken[1][j])]
    used_a, used_b = set[int](), set[int]()
    for pair, i, j in zip(open_pairs.tolist(), a[open_pairs].tolist(), b[open_pairs].tolist(), strict=True):
        if i not in used_a and j not in used_b:
            made[pair] = True
            used_a.add(i)
            used_b.add(j)
    return made
