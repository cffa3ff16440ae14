import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.compound_cells import rle_columns
from competitions.scoring.metrics.rle_columns import overlaps
from competitions.scoring.reading import Reads

from .encoding import EMPTY

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Dice coefficient over the pixels of all records."""
    submission, answers = align(submission, answers, on="record_id", columns=["encoded_pixels"])
    pixels = (answers["height"] * answers["width"]).tolist()
    truth = rle_columns(answers.replace({"encoded_pixels": {EMPTY: ""}}), "encoded_pixels", pixels)
    submission = submission.replace({"encoded_pixels": {EMPTY: ""}})
    # v2 fixes odd-token-counts, runs-beyond-the-image
    predicted = rle_columns(submission, "encoded_pixels", pixels, strict=edition == "v2")
    shared = int(overlaps(truth, predicted).sum())
    total = int(truth.areas.sum() + predicted.areas.sum())
    return 2 * shared / total if total else float("nan")
