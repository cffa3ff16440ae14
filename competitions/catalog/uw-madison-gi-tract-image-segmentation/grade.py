import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.concurrency import parallel_map
from competitions.editions import Edition
from competitions.scoring.cells import joined, texts
from competitions.scoring.checks import align, require_columns
from competitions.scoring.compound_cells import rle_columns
from competitions.scoring.metrics.rle_columns import RleMasks, dices
from competitions.scoring.metrics.volumes import hausdorff_of_voxels
from competitions.scoring.reading import Reads

from .scans import Scans, batches

READS = Reads(answers=("id", "class", "predicted", "image_width", "image_height"), texts="arrow")

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
    widths, heights = (answers[f"image_{name}"].to_numpy().astype(int) for name in ("width", "height"))
    pixels = (widths * heights).tolist()

    def masks_and_scans(table: pd.DataFrame) -> tuple[RleMasks, Scans]:
        # v2 fixes odd-token-counts, runs-beyond-the-image
        strict = edition == "v2" and table is submission
        masks = rle_columns(table, "predicted", pixels[: len(table)], missing="", strict=strict)
        return masks, Scans.of(texts(table, "id"), masks, (widths, heights))

    (truth, true_scans), (predicted, predicted_scans) = parallel_map(masks_and_scans, (answers, submission))

    def distances(batch: slice) -> NDArray[np.float64]:
        return hausdorff_of_voxels(
            true_scans.voxels(batch, edition), predicted_scans.voxels(batch, edition), true_scans.shapes[batch]
        )

    of_scans = np.concatenate([*parallel_map(distances, batches(true_scans, predicted_scans)), []])
    return 0.4 * mean(dices(truth, predicted, empty=np.nan)) + 0.6 * (1 - mean(of_scans))


def keyed(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column `KEY` that combines id and class."""
    return table.assign(**{KEY: joined(table, "id", "class")})


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
