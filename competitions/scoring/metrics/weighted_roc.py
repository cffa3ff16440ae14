"""The area under the ROC curve, weighted by bands of true positive rate.

This metric has a module of its own, because importing scikit-learn takes a second: a grader that needs it imports it
before its workers are forked, and other graders do not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve


def weighted_roc_auc(
    truth: ArrayLike, scores: ArrayLike, thresholds: Sequence[float] = (0, 0.4, 1), weights: Sequence[float] = (2, 1)
) -> float:
    """Area under the ROC curve, weighted by bands of true positive rate (ALASKA2), over the best possible.

    Between heights `thresholds[i]` and `thresholds[i + 1]` the area counts `weights[i]` times; within a band the curve
    is closed by the point (1, upper height). Both of shape (n,).

    >>> weighted_roc_auc([0, 1], [0.1, 0.9])
    1.0
    >>> round(weighted_roc_auc([0, 1], [0.5, 0.5]), 9)
    0.585714286
    """
    if not len(np.asarray(truth)):
        raise ValueError("the area under the ROC curve of no rows is undefined")
    fpr, tpr, _ = roc_curve(np.asarray(truth), np.asarray(scores, dtype=np.float64), pos_label=1)
    for height in thresholds:
        if not (tpr == height).any():
            i = int(np.argmax(tpr > height))
            crossing = fpr[i - 1] + (fpr[i] - fpr[i - 1]) * (height - tpr[i - 1]) / (tpr[i] - tpr[i - 1])
            fpr, tpr = np.insert(fpr, i, crossing), np.insert(tpr, i, height)
    total = 0.0
    for low, high, weight in zip(thresholds[:-1], thresholds[1:], weights, strict=True):
        band = (low <= tpr) & (tpr <= high)
        if band.any():
            total += weight * auc(np.append(fpr[band], 1.0), np.append(tpr[band], high) - low)
    return float(total / np.dot(np.diff(np.asarray(thresholds)), np.asarray(weights)))
