"""Metrics that several folders in the published format import."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def average_precision_at_k(actual: Collection[Hashable], predicted: Sequence[Hashable], k: int) -> float:
    """AP@k: the mean precision at the ranks of hits among the first `k` guesses, divided by min(true items, k).

    A repeated guess takes up a rank and counts once. Higher is better. Raises `ZeroDivisionError` without a true item.

    >>> average_precision_at_k({"a", "b"}, ["a", "x", "b"], 3)
    0.8333333333333333
    """
    return mean_average_precision_at_k([actual], [predicted], k)


def mean_average_precision_at_k(
    actual: Sequence[Collection[Hashable]], predicted: Sequence[Sequence[Hashable]], k: int
) -> float:
    """MAP@k: the mean of `average_precision_at_k` over rows, which are paired by position. Higher is better.

    Raises `ValueError` for different numbers of rows, and `ZeroDivisionError` if a row has no true item.

    >>> mean_average_precision_at_k([{"a"}, {"b"}], [["x", "a"], ["b"]], 5)
    0.75
    """
    if len(actual) != len(predicted):
        raise ValueError(f"{len(actual)} rows of true items and {len(predicted)} rows of guesses")
    from competitions.scoring.metrics.ranking import mean_average_precision_at_k as of_rows

    return of_rows(actual, predicted, k)  # type: ignore[arg-type]


def dice_coefficient(predicted: ArrayLike, true: ArrayLike) -> float:
    """2 |A and B| / (|A| + |B|) of two binary arrays of one shape, in [0, 1]; 1 if both are empty.

    >>> dice_coefficient([[1, 1], [0, 0]], [[1, 0], [0, 0]])
    0.6666666666666666
    """
    import numpy as np

    a, b = np.asarray(predicted).astype(bool), np.asarray(true).astype(bool)
    if a.shape != b.shape:
        raise ValueError(f"arrays of the shapes {a.shape} and {b.shape}")
    total = int(a.sum()) + int(b.sum())
    return 2 * int((a & b).sum()) / total if total else 1.0
