"""Warnings about the score of a valid submission, which become the message of the grade."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class ScoreNote(UserWarning):
    """A warning about the score of a valid submission."""


def note_order_of_repeated_ids(submission: pd.DataFrame, answers: pd.DataFrame, on: str) -> None:
    """Warn if a published score depends on the processor, which decides the order in which equal ids are sorted.

    NumPy sorts numbers with AVX2 or AVX-512 if the processor has them, and none of these sorts keeps the order of
    equal ids. There is no warning if the ids are in the order of the answers, which are sorted in the same way, or if
    the rows of an id are equal.
    """
    ids, expected_ids = submission[on], answers[on]
    if ids.dtype.kind not in "iuf" or not ids.duplicated().any():
        return
    if ids.reset_index(drop=True).equals(expected_ids.reset_index(drop=True)):
        return
    if len(submission.drop_duplicates()) > ids.nunique(dropna=False):
        text = (
            f"Rows with the same `{on}` are not in the order of the sample submission. The published grader compares "
            "them in an order that depends on the processor, so its score may be another one."
        )
        warnings.warn(ScoreNote(text), stacklevel=2)
