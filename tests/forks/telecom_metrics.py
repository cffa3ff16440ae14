"""Metrics of all competitions of this fork."""

import numpy as np

from mlebench.grade_helpers import InvalidSubmissionError


def rmse(y_true, y_pred) -> float:
    if np.isnan(y_pred).any():
        raise InvalidSubmissionError("Predictions contain NaN")
    return float(np.sqrt(np.mean((np.asarray(y_true) - np.asarray(y_pred)) ** 2)))
