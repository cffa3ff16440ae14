import math

import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labelled_numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.boxes3d import Box3D, mean_average_precision_3d, problem


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean average precision over 3D IoU thresholds. Boxes of classes that are not in a sample's truth are ignored."""
    submission, answers = align(submission, answers, on="Id", columns=["PredictionString"])
    truth, predicted = _boxes(answers), _boxes(submission)
    for true_boxes, boxes in zip(truth, predicted, strict=True):
        classes = {box.label for box in true_boxes}
        checked = boxes if edition == "v2" else [box for box in boxes if box.label in classes]
        if reason := problem(checked):
            raise InvalidSubmission(f"`PredictionString` cannot be compared with the truth: {reason}.")
    return mean_average_precision_3d(truth, predicted)


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require that all boxes can be compared, also those that v1 ignores: which these are would tell the truth."""
    submission, _ = align(submission, answers, on="Id", columns=["PredictionString"])
    for boxes in _boxes(submission):
        if reason := problem(boxes):
            raise InvalidSubmission(f"`PredictionString` has a box that cannot be compared with others: {reason}.")


def _boxes(frame: pd.DataFrame) -> list[list[Box3D]]:
    rows = labelled_numbers(frame, "PredictionString", 8, label_last=True, separator=" ", missing="")
    boxes = [[Box3D(label, *numbers) for label, numbers in row] for row in rows]
    if any(math.isinf(box.yaw) for row in boxes for box in row):
        raise InvalidSubmission("`PredictionString` has an infinite yaw.")
    return boxes
