"""Grading of alaska2-image-steganalysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grading.cells import numbers
from grading.checks import align
from grading.metrics.ranking import weighted_roc_auc

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Area under the ROC curve, true positive rates up to 0.4 counted twice."""
    submission, answers = align(submission, answers, on="Id", columns=["Label"])
    return weighted_roc_auc(answers["Label"], numbers(submission, "Label"))
