"""Grading of iwildcam-2020-fgvc7."""

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
    submission, answers = align(submission, answers, on="Id", columns=["Category"])
    truth = answers["Category"]
    return accuracy(truth, labels(submission, "Category", truth, strict=edition == "v2"))
