"""Grading of cdiscount-image-classification-challenge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grading.cells import labels
from grading.checks import align
from grading.metrics.classification import accuracy

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Share of right categories."""
    submission, answers = align(submission, answers, on="_id", columns=["category_id"])
    truth = answers["category_id"]
    return accuracy(truth, labels(submission, "category_id", truth, strict=edition == "v2"))
