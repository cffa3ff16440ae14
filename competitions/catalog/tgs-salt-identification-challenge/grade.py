import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.compound_cells import rle_columns
from competitions.scoring.metrics.rle_columns import ious
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")

PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean over images of the share of IoU thresholds that are exceeded."""
    require_exact_columns(submission, ["id", "rle_mask"])
    submission, answers = align(submission, answers, on="id")
    strict = edition == "v2"  # v2 fixes empty-counts-as-full, odd-token-counts, runs-beyond-the-image
    truth = rle_columns(answers, "rle_mask", PIXELS, missing="")
    predicted = rle_columns(submission, "rle_mask", PIXELS, missing="", strict=strict)
    scores = ious(truth, predicted)
    if not strict:  # as published, an empty prediction for an image with salt counts as marking the whole image
        scores = np.where((truth.areas > 0) & (predicted.areas == 0), truth.areas / PIXELS, scores)
    return float(np.mean(scores[:, None] > THRESHOLDS))
