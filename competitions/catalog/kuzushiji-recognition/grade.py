import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import strings
from competitions.scoring.checks import align
from competitions.scoring.compound_cells import plain_numbers
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.classification import f_beta
from competitions.scoring.metrics.detection import located_counts
from competitions.scoring.metrics.items import split_items
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")
MOST_POINTS = 1200  # the organisers' limit per page, which the published grader does not enforce


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """F1 of located characters, counted over all pages."""
    submission, answers = align(submission, answers, on="image_id", columns=["labels"])
    box_pages, characters, boxes = groups(strings(answers, "labels", missing=""), 5)
    pages, guesses, points = groups(strings(submission, "labels", missing=""), 3)
    if edition == "v2" and np.bincount(pages, minlength=1).max() > MOST_POINTS:  # v2 fixes points-not-limited
        raise InvalidSubmission(f"`labels` may have at most {MOST_POINTS} points per page.")
    return f_beta(*located_counts(characters, boxes, guesses, points, (box_pages, pages)))


def groups(cells: pa.Array, size: int) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.float64]]:
    """The page of each of n characters, the characters, and the numbers after each as an array (n, size - 1)."""
    pages = np.flatnonzero(pc.not_equal(cells, "").to_numpy(zero_copy_only=False))
    parts = split_items(cells if len(pages) == len(cells) else cells.take(pa.array(pages)), " ")
    if (parts.sizes % size).any():
        raise InvalidSubmission(f"`labels` must be groups of {size}, separated by single spaces: character, x, y.")
    values: pa.Array = parts.values
    first = np.arange(0, len(values), size)
    try:
        numbers = [plain_numbers(values.take(pa.array(first + position))) for position in range(1, size)]
    except ValueError as error:
        raise InvalidSubmission(f"`labels` must be groups `character x y`: {error}.") from error
    return np.repeat(pages, parts.sizes // size), values.take(pa.array(first)), np.array(numbers).T
