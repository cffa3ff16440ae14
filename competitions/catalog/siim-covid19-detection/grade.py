import math

import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labelled_numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.detection import Detection, mean_average_precision


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean average precision of the six classes at IoU > 0.5; other classes are ignored."""
    submission, answers = align(submission, answers, on="id", columns=["PredictionString"])
    truth, predicted = _detections(answers), _detections(submission)
    classes = {found.label for row in truth for found in row}
    if not all(math.isfinite(found.confidence) for row in predicted for found in row if found.label in classes):
        raise InvalidSubmission("Every confidence in `PredictionString` must be a finite number.")
    return mean_average_precision(truth, predicted)


def _detections(frame: pd.DataFrame) -> list[list[Detection]]:
    rows = labelled_numbers(frame, "PredictionString", 5)
    return [[Detection(label, confidence, (x, y, x2, y2)) for label, (confidence, x, y, x2, y2) in row] for row in rows]
