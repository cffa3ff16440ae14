"""Grading of hubmap-kidney-segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grading.cells import runs
from grading.checks import align
from grading.metrics.masks import dice

if TYPE_CHECKING:
    import pandas as pd

    from competitions.editions import Edition


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean Dice coefficient of the images."""
    submission, answers = align(submission, answers, on="id", columns=["predicted"])
    pixels = (answers["width_pixels"] * answers["height_pixels"]).tolist()
    truth = runs(answers, "encoding", pixels, missing="")
    predicted = runs(submission, "predicted", pixels, missing="", strict=edition == "v2")
    return float(np.mean(list(map(dice, truth, predicted))))
