import numpy as np
import pandas as pd

from competitions.scoring.cells import runs
from competitions.scoring.checks import align
from competitions.scoring.metrics.masks import dice


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Mean Dice coefficient of the images."""
    submission, answers = align(submission, answers, on="id", columns=["predicted"])
    pixels = (answers["width_pixels"] * answers["height_pixels"]).tolist()
    truth = runs(answers, "encoding", pixels, missing="")
    predicted = runs(submission, "predicted", pixels, missing="", strict=edition == "v2")
    return float(np.mean(list(map(dice, truth, predicted))))
