"""Grading of denoising-dirty-documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grading.cells import numbers
from grading.checks import align
from grading.metrics.regression import rmse

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Root mean squared error over all pixels."""
    submission, answers = align(submission, answers, on="id", columns=["value"])
    return rmse(answers["value"], numbers(submission, "value"))
