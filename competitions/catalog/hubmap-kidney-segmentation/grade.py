import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.compound_cells import rle_columns
from competitions.scoring.metrics.rle_columns import dices
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean Dice coefficient of the images."""
    submission, answers = align(submission, answers, on="id", columns=["predicted"])
    pixels = (answers["width_pixels"] * answers["height_pixels"]).tolist()
    truth = rle_columns(answers, "encoding", pixels, missing="")
    # v2 fixes odd-token-counts, runs-beyond-the-image
    predicted = rle_columns(submission, "predicted", pixels, missing="", strict=edition == "v2")
    return float(np.mean(dices(truth, predicted)))
