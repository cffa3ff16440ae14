import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.classification import f_beta
from competitions.scoring.metrics.detection import located_counts

MOST_POINTS = 1200  # the organisers' limit per page, which the published grader does not enforce


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """F1 of located characters, counted over all pages."""
    submission, answers = align(submission, answers, on="image_id", columns=["labels"])
    boxes = [groups(labels, 5) for labels in texts(answers, "labels", missing="")]
    points = [groups(labels, 3) for labels in texts(submission, "labels", missing="")]
    if edition == "v2" and any(len(characters) > MOST_POINTS for characters, _ in points):
        raise InvalidSubmission(f"`labels` may have at most {MOST_POINTS} points per page.")
    counts = [located_counts(*true, *guess) for true, guess in zip(boxes, points, strict=True)]
    return f_beta(*np.sum(counts, axis=0))


def groups(labels: str, size: int) -> tuple[list[str], NDArray[np.float64]]:
    """Return the n characters, and the numbers after each of them as an array (n, size - 1)."""
    parts = labels.split(" ") if labels else []
    if len(parts) % size:
        raise InvalidSubmission(f"`labels` must be groups of {size}, separated by single spaces: character, x, y.")
    try:
        numbers = [[float(number) for number in parts[place::size]] for place in range(1, size)]
    except ValueError as error:
        raise InvalidSubmission(f"`labels` must be groups `character x y`: {error}.") from error
    return parts[0::size], np.array(numbers).T
