import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import rle_masks
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.rle_masks import RleMask, iou

PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean over images of the share of IoU thresholds that are exceeded."""
    require_exact_columns(submission, ["id", "rle_mask"])
    submission, answers = align(submission, answers, on="id")
    strict = edition == "v2"
    truth = rle_masks(answers, "rle_mask", PIXELS, missing="")
    predicted = rle_masks(submission, "rle_mask", PIXELS, missing="", strict=strict)
    ious = [salt_iou(*masks, strict) for masks in zip(truth, predicted, strict=True)]
    return float(np.mean(np.array(ious)[:, None] > THRESHOLDS))


def salt_iou(truth: RleMask, predicted: RleMask, strict: bool) -> float:
    """IoU of two masks. As published, an empty prediction for an image with salt counts as marking the whole image."""
    if truth.area and not predicted.area and not strict:
        return truth.area / PIXELS
    return iou(truth, predicted)
