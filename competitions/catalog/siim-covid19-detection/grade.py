import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.compound_cells import labelled_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.detection import (
    Detections,
    mean_average_precision,
    voc_mean_average_precision,
)
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean average precision of the six classes at IoU > 0.5, in v2 that of PASCAL VOC 2010; others are ignored."""
    submission, answers = align(submission, answers, on="id", columns=["PredictionString"])
    truth, predicted = _detections(answers), _detections(submission)
    if edition == "v2":  # v2 fixes own-average-precision
        if not np.isfinite(predicted.confidences).all():
            raise InvalidSubmission("Every confidence in `PredictionString` must be a finite number.")
        return voc_mean_average_precision(truth, predicted, 0.5)
    in_truth = pd.Series(predicted.labels).isin(truth.labels).to_numpy()
    if not np.isfinite(predicted.confidences[in_truth]).all():
        raise InvalidSubmission("Every confidence in `PredictionString` must be a finite number.")
    return mean_average_precision(truth, predicted)


def _detections(frame: pd.DataFrame) -> Detections:
    rows, labels, numbers = labelled_columns(frame, "PredictionString", 5)
    return Detections(rows, labels, numbers[:, 0], numbers[:, 1:], len(frame))
