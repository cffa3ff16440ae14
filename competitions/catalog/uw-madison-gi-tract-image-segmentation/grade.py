from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align, require_columns
from competitions.scoring.compound_cells import rle_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.rle_columns import RleMasks, dices
from competitions.scoring.metrics.volumes import hausdorff_of_voxels
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "class", "predicted", "image_width", "image_height"))

KEY = "id and class"


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """0.4 times the mean Dice coefficient of rows, plus 0.6 times (1 - mean Hausdorff distance of volumes).

    Source: the section "Evaluation" of Kaggle's page, which gives the weights, Dice, and distances in coordinates from
    0 to 1. It says neither which rows are counted nor whether organs are apart: both editions leave out rows without a
    mask and unite organs, see the known issues `empty-pairs-left-out` and `organs-united`.
    """
    require_columns(submission, "id", "class", "predicted")
    if edition == "v2":  # v2 fixes rows-matched-by-position
        submission, answers = align(keyed(submission), keyed(answers), on=KEY)
    # As published, rows are matched by position, and surplus rows are ignored.
    submission = submission.iloc[: len(answers)]
    shapes = list(zip(answers["image_width"].astype(int), answers["image_height"].astype(int), strict=True))
    pixels = [width * height for width, height in shapes]
    truth = rle_columns(answers, "predicted", pixels, missing="")
    # v2 fixes odd-token-counts, runs-beyond-the-image
    predicted = rle_columns(submission, "predicted", pixels[: len(submission)], missing="", strict=edition == "v2")
    tables = (answers, truth), (submission, predicted)
    pairs = zip(*(scans(table, masks, shapes, edition) for table, masks in tables), strict=False)
    distances = [hausdorff_of_voxels(true, found, shape) for (true, shape), (found, _) in pairs]
    return 0.4 * mean(dices(truth, predicted, empty=np.nan)) + 0.6 * (1 - mean(np.array(distances)))


def keyed(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column `KEY` that combines id and class."""
    return table.assign(**{KEY: table["id"].astype(str) + " " + table["class"].astype(str)})


def scans(
    table: pd.DataFrame, masks: RleMasks, shapes: list[tuple[int, int]], edition: Edition
) -> Iterator[tuple[NDArray[np.int64], tuple[int, int, int]]]:
    """Yield each scan in order of the ids: the voxels (slice, y, x) of all its organs, and its shape."""
    ids = texts(table, "id")
    rows_of: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(range(len(ids)), key=ids.__getitem__):
        rows_of[ids[row].split("_slice_")[0]][ids[row]].append(row)
    for scan, slices in rows_of.items():
        if len({shapes[row] for rows in slices.values() for row in rows}) > 1:
            raise InvalidSubmission(
                f"`id`: the slices of {scan[:40]} differ in size; keep the rows of test.csv in order."
            )
    bounds = np.searchsorted(masks.rows, np.arange(masks.size + 1))
    return (voxels(masks, bounds, list(slices.values()), shapes, edition) for slices in rows_of.values())


def voxels(
    masks: RleMasks,
    bounds: NDArray[np.intp],
    slices: list[list[int]],
    shapes: list[tuple[int, int]],
    edition: Edition,
) -> tuple[NDArray[np.int64], tuple[int, int, int]]:
    """The voxels of the slices with these rows, and the shape. `bounds`: the number of the first run of each row."""
    width, height = shapes[slices[0][0]]
    rows = np.concatenate(slices)
    counts = bounds[rows + 1] - bounds[rows]
    runs = np.arange(counts.sum()) + np.repeat(bounds[rows] - np.cumsum(counts) + counts, counts)
    starts, lengths = masks.starts[runs], masks.stops[runs] - masks.starts[runs]
    pixels = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    number = np.repeat(np.repeat(np.arange(len(slices)), list(map(len, slices))), counts)
    if edition == "v1":  # v2 fixes pixel-order
        x, y = np.divmod(pixels, height)  # as published: down the columns, which is not how masks are numbered
    else:
        y, x = np.divmod(pixels, width)
    return np.stack([np.repeat(number, lengths), y, x]).T, (len(slices), height, width)


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
