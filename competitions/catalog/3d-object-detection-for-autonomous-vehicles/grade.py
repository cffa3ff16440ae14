import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.compound_cells import labelled_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.boxes3d import Boxes3D, joint_groups, mean_average_precision_3d, problem
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean average precision over 3D IoU thresholds. Boxes of classes that are not in a sample's truth are ignored."""
    submission, answers = align(submission, answers, on="Id", columns=["PredictionString"])
    truth, predicted = _boxes(answers), _boxes(submission)
    checked = np.ones(len(predicted.samples), dtype=bool)
    if edition == "v1":  # v2 fixes broken-boxes-by-class
        groups, predicted_groups = joint_groups(truth, predicted)
        checked = np.isin(predicted_groups, groups)
    if reason := _first_problem(predicted.samples[checked], predicted.numbers[checked]):
        raise InvalidSubmission(f"`PredictionString` cannot be compared with the truth: {reason}.")
    return mean_average_precision_3d(truth, predicted)


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require that all boxes can be compared, also those that v1 ignores: which these are would tell the truth."""
    submission, _ = align(submission, answers, on="Id", columns=["PredictionString"])
    boxes = _boxes(submission)
    if reason := _first_problem(boxes.samples, boxes.numbers):
        raise InvalidSubmission(f"`PredictionString` has a box that cannot be compared with others: {reason}.")


def _first_problem(samples: NDArray[np.int64], numbers: NDArray[np.float64]) -> str | None:
    """What is wrong with the boxes of the first sample where something is; the sample and numbers of each are given."""
    if problem(numbers) is None:
        return None
    rows = np.split(numbers, np.flatnonzero(np.diff(samples)) + 1)
    return next(filter(None, map(problem, rows)))


def _boxes(frame: pd.DataFrame) -> Boxes3D:
    rows, labels, numbers = labelled_columns(frame, "PredictionString", 8, label_last=True, separator=" ", missing="")
    if np.isinf(numbers[:, -1]).any():
        raise InvalidSubmission("`PredictionString` has an infinite yaw.")
    return Boxes3D(rows, labels, numbers[:, 0], numbers[:, 1:], len(frame))
