"""Grading of herbarium-2022-fgvc9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grading.cells import integers, whole_numbers
from grading.checks import align
from grading.metrics.classification import f1_macro

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Macro-averaged F1."""
    submission, answers = align(submission, answers, on="Id", columns=["Predicted"])
    predicted = (whole_numbers if edition == "v2" else integers)(submission, "Predicted")
    return f1_macro(answers["Predicted"], predicted)
