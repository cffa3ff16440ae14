import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.compound_cells import rle_masks
from competitions.scoring.metrics.classification import f_beta
from competitions.scoring.metrics.rle_masks import overlap
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """F0.5 of the ink pixels of the single test fragment."""
    require_exact_columns(submission, ["Id", "Predicted"])
    submission, answers = align(submission, answers, on="Id")
    pixels = int(answers["width"].iloc[0] * answers["height"].iloc[0])
    (truth,) = rle_masks(answers, "Predicted", pixels)
    # v2 fixes odd-token-counts, runs-beyond-the-image
    (predicted,) = rle_masks(submission, "Predicted", pixels, strict=edition == "v2")
    hits = overlap(truth, predicted)
    return f_beta(hits, predicted.area - hits, truth.area - hits, beta=0.5)
