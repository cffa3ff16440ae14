from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.cells import rle_masks, texts
from competitions.scoring.checks import align, require_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.rle_masks import RleMask, dice, to_mask
from competitions.scoring.metrics.volumes import scaled_hausdorff

KEY = "id and class"


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """0.4 times the mean Dice coefficient of rows, plus 0.6 times (1 - mean Hausdorff distance of volumes)."""
    require_columns(submission, "id", "class", "predicted")
    if edition == "v2":
        submission, answers = align(keyed(submission), keyed(answers), on=KEY)
    # As published, rows are matched by position, and surplus rows are ignored.
    submission = submission.iloc[: len(answers)]
    shapes = list(zip(answers["image_width"].astype(int), answers["image_height"].astype(int), strict=True))
    pixels = [width * height for width, height in shapes]
    truth = rle_masks(answers, "predicted", pixels, missing="")
    predicted = rle_masks(submission, "predicted", pixels[: len(submission)], missing="", strict=edition == "v2")
    overlaps = [dice(*masks, empty=np.nan) for masks in zip(truth, predicted, strict=False)]
    pairs = zip(volumes(answers, truth, shapes), volumes(submission, predicted, shapes), strict=False)
    distances = [scaled_hausdorff(*pair) for pair in pairs]
    return 0.4 * mean(overlaps) + 0.6 * (1 - mean(distances))


def keyed(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column `KEY` that combines id and class."""
    return table.assign(**{KEY: table["id"].astype(str) + " " + table["class"].astype(str)})


def volumes(table: pd.DataFrame, masks: list[RleMask], shapes: list[tuple[int, int]]) -> Iterator[NDArray[np.bool_]]:
    """Yield the scans (slices, height, width) in order of their ids, with the organs of a slice combined."""
    ids = texts(table, "id")
    scans: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(range(len(ids)), key=ids.__getitem__):
        scans[ids[row].split("_slice_")[0]][ids[row]].append(row)
    for scan, slices in scans.items():
        if len({shapes[row] for rows in slices.values() for row in rows}) > 1:
            raise InvalidSubmission(
                f"`id`: the slices of {scan[:40]} differ in size; keep the rows of test.csv in order."
            )

    def painted(row: int) -> NDArray[np.bool_]:
        width, height = shapes[row]
        return to_mask(masks[row], width * height).reshape(width, height).T

    return (
        np.stack([np.logical_or.reduce([painted(row) for row in rows]) for rows in slices.values()])
        for slices in scans.values()
    )


def mean(values: list[float]) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = np.array(values)[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
