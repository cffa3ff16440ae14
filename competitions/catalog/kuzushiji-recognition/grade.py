from itertools import chain

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
    box_pages, characters, boxes = groups(texts(answers, "labels", missing=""), 5)
    pages, guesses, points = groups(texts(submission, "labels", missing=""), 3)
    if edition == "v2" and np.bincount(pages, minlength=1).max() > MOST_POINTS:
        raise InvalidSubmission(f"`labels` may have at most {MOST_POINTS} points per page.")
    return f_beta(*located_counts(characters, boxes, guesses, points, (box_pages, pages)))


def groups(cells: list[str], size: int) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
    """The page of each of n characters, the characters, and the numbers after each as an array (n, size - 1)."""
    lists = [labels.split(" ") if labels else [] for labels in cells]
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    if (sizes % size).any():
        raise InvalidSubmission(f"`labels` must be groups of {size}, separated by single spaces: character, x, y.")
    parts = list(chain.from_iterable(lists))
    try:
        numbers = [[float(number) for number in parts[place::size]] for place in range(1, size)]
    except ValueError as error:
        raise InvalidSubmission(f"`labels` must be groups `character x y`: {error}.") from error
    return np.repeat(np.arange(len(lists)), sizes // size), parts[0::size], np.array(numbers).T
