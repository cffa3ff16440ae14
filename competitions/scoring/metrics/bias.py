"""Fairness-aware area under the ROC curve (Borkan et al. 2019, arXiv 1903.04561); higher is better."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from competitions.scoring.metrics.ranking import power_mean, roc_auc


def bias_auc(
    truth: ArrayLike, scores: ArrayLike, identities: ArrayLike, power: float = -5, weight: float = 0.25
) -> float:
    """Weighted sum of the overall AUC and of power means over identities of three partial AUCs; each has `weight`.

    `truth` and `scores` are (n,), `identities` is boolean (n, k): whether a comment mentions identity j. Each identity
    has a subgroup AUC (its members only), BPSN (its negatives and the others' positives) and BNSP (its positives and
    the others' negatives). Raises ValueError if one of these subsets has one class only.

    >>> truth, members = [1, 0, 1, 0], [[True], [True], [False], [False]]
    >>> bias_auc(truth, [0.9, 0.1, 0.8, 0.2], members)
    1.0
    """
    y, s, member = np.asarray(truth) == 1, np.asarray(scores), np.asarray(identities, dtype=bool)
    positive = y[:, None]
    subsets = member, member ^ positive, member == positive
    means = [power_mean(np.array([roc_auc(y[rows], s[rows]) for rows in subset.T]), power) for subset in subsets]
    return float(weight * roc_auc(y, s) + sum(weight * mean for mean in means))
