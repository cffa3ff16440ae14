"""Metrics of predicted classes.

Labels are 1-D arrays of whole numbers, booleans or text, paired by row. Higher is better for all scores. Definitions
follow scikit-learn 1.5; undefined fractions (0/0) count as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from competitions.scoring.metrics.items import Items, count_distinct, split_items


def accuracy(truth: ArrayLike | pa.Array, predicted: ArrayLike | pa.Array) -> float:
    """Share of equal labels; text equals no number. Arrow arrays are without nulls and of one type.

    Raises ValueError if the shapes differ.

    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    >>> accuracy([True, False], [1.0, 0.0])
    1.0
    >>> accuracy([1, 2], ["1", "2"])
    0.0
    """
    if isinstance(truth, pa.Array) and isinstance(predicted, pa.Array) and len(truth) == len(predicted):
        return float(np.mean(pc.equal(truth, predicted).to_numpy(zero_copy_only=False)))
    true, guess = _pair(truth, predicted)
    if _is_text(true) != _is_text(guess):
        return 0.0
    return float(np.mean(true == guess))


def f1_macro(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over classes of F1 = 2 TP / (2 TP + FP + FN), over the union of true and predicted classes.

    >>> round(f1_macro([0, 1, 2, 2], [0, 2, 2, 1]), 6)
    0.5
    >>> f1_macro([0, 0], [0, 7])  # a class predicted in vain adds a zero
    0.3333333333333333
    """
    true, guess, count = _codes(truth, predicted)
    hits = np.bincount(true[true == guess], minlength=count)
    total = np.bincount(true, minlength=count) + np.bincount(guess, minlength=count)
    return float(np.mean(2 * hits / total))


def matthews_corrcoef(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Matthews correlation of two classes or more (Gorodkin 2004), in [-1, 1]; 0 if either side is constant.

    >>> matthews_corrcoef([1, 1, 0, 0], [0, 0, 1, 1])
    -1.0
    >>> matthews_corrcoef([1, 0, 0], [1, 1, 1])
    0.0
    """
    true, guess, count = _codes(truth, predicted)
    true_counts, guess_counts = np.bincount(true, minlength=count), np.bincount(guess, minlength=count)
    n = float(len(true))
    true_counts, guess_counts = true_counts.astype(np.float64), guess_counts.astype(np.float64)
    covariance = float(np.count_nonzero(true == guess)) * n - true_counts @ guess_counts
    spread_true, spread_guess = n * n - true_counts @ true_counts, n * n - guess_counts @ guess_counts
    if spread_true * spread_guess == 0:
        return 0.0
    return float(covariance / np.sqrt(spread_true * spread_guess))


def quadratic_weighted_kappa(truth: ArrayLike, predicted: ArrayLike, classes: ArrayLike = ()) -> float:
    """Cohen's kappa with quadratic weights, 1 - sum(w C) / sum(w E).

    C counts pairs of labels, E is the product of its margins over n, and w[i, j] = (i - j)² with the *positions* of the
    labels among all that occur, as in scikit-learn: a label that does not occur leaves no gap, unless it is one of
    `classes`. NaN if only one label occurs on both sides.

    >>> quadratic_weighted_kappa([0, 1, 2, 3], [0, 1, 2, 3])
    1.0
    >>> quadratic_weighted_kappa([0, 1, 2, 3], [2, 2, 2, 2])
    0.0
    >>> round(quadratic_weighted_kappa([0, 0, 4, 5], [0, 4, 4, 4]), 6)
    0.428571
    >>> round(quadratic_weighted_kappa([0, 0, 4, 5], [0, 4, 4, 4], classes=range(6)), 6)
    0.514286
    """
    true, guess, count = _codes(truth, predicted, classes)
    pairs = np.bincount(guess * count + true, minlength=count * count).reshape(count, count)
    expected = np.outer(pairs.sum(axis=0), pairs.sum(axis=1)) / pairs.sum()
    position = np.arange(count)
    weights = (position[:, None] - position) ** 2
    with np.errstate(invalid="ignore"):
        return float(1 - np.sum(weights * pairs) / np.sum(weights * expected))


def f1_micro_sets(
    truth: Sequence[str] | pa.Array, predicted: Sequence[str] | pa.Array, *, count_unknown: bool = False
) -> float:
    """Micro-averaged F1 of label sets, one white-space separated text per row.

    F1 = 2 TP / (number of true labels + number of predicted labels), counted over all rows. Repeated labels of a row
    count once; predicted labels that occur nowhere in the truth are dropped, without penalty, unless `count_unknown`.

    >>> f1_micro_sets(["cat dog", "dog"], ["dog dog", "dog cat"])
    0.6666666666666666
    >>> f1_micro_sets(["cat", "dog"], ["cat unicorn", ""])
    0.6666666666666666
    >>> f1_micro_sets(["cat", "dog"], ["cat unicorn", ""], count_unknown=True)
    0.5
    """
    true, guesses = _labels_of(truth), _labels_of(predicted)
    of_truth, guessed, common = count_distinct(true, guesses if count_unknown else guesses.among(true))
    total = int(of_truth.sum() + guessed.sum())
    return 2 * int(common.sum()) / total if total else 0.0


def f1_mean_sets(truth: Sequence[str] | pa.Array, predicted: Sequence[str] | pa.Array) -> float:
    """Mean over rows of the F1 of label sets, one white-space separated text per row.

    F1 of a row = 2 TP / (number of true labels + number of predicted labels), 1 if both sets are empty. This is what
    Kaggle calls the mean F1 score. Repeated labels of a row count once.

    >>> f1_mean_sets(["cat dog", "dog"], ["dog dog", "dog"])
    0.8333333333333333
    """
    of_truth, guessed, common = count_distinct(_labels_of(truth), _labels_of(predicted))
    total = of_truth + guessed
    scores = np.where(total > 0, 2 * common / np.maximum(total, 1), 1.0)
    return float(np.mean(scores)) if len(scores) else 0.0


def _labels_of(cells: Sequence[str] | pa.Array) -> Items:
    return split_items(cells if isinstance(cells, pa.Array) else pa.array(cells, pa.string()))


def f_beta(true_positives: float, false_positives: float, false_negatives: float, beta: float = 1.0) -> float:
    """(1 + b²) TP / ((1 + b²) TP + b² FN + FP), 0 without a true positive.

    >>> f_beta(3, 1, 2)
    0.6666666666666666
    >>> f_beta(0, 0, 0)
    0.0
    """
    if true_positives == 0:
        return 0.0
    weight = 1 + beta**2
    return float(weight * true_positives / (weight * true_positives + beta**2 * false_negatives + false_positives))


def _pair(truth: ArrayLike, predicted: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    true, guess = np.asarray(truth), np.asarray(predicted)
    if true.shape != guess.shape or true.ndim != 1:
        raise ValueError(f"labels must be two vectors of one length, not {true.shape} and {guess.shape}")
    return true, guess


def _is_text(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "OUS" and (not values.size or isinstance(values.flat[0], str))


def _codes(
    truth: ArrayLike, predicted: ArrayLike, further: ArrayLike = ()
) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Both arrays as positions in the sorted union of their labels and `further` ones, and the number of labels."""
    true, guess = _pair(truth, predicted)
    if _is_text(true) != _is_text(guess):
        raise ValueError("text labels cannot be mixed with numbers")
    labels = np.concatenate([true, guess, np.asarray(further, dtype=true.dtype)])
    codes, classes = pd.factorize(labels, sort=True, use_na_sentinel=False)
    return codes[: len(true)], codes[len(true) : 2 * len(true)], len(classes)
