import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text, choices, labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

READS = Reads(answers=("image_id", "label"), texts="arrow")

CLASSES = (
    "bacterial_leaf_blight",
    "bacterial_leaf_streak",
    "bacterial_panicle_blight",
    "blast",
    "brown_spot",
    "dead_heart",
    "downy_mildew",
    "hispa",
    "normal",
    "tungro",
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="image_id", columns=["label"])
    if edition == "v2":  # v2 fixes unknown-labels-accepted
        choices(submission, "label", CLASSES)
    if submission["label"].notna().all():
        # This rejects fractions, as the published grader does unless there are empty cells.
        labels(submission, "label", answers["label"])
    return accuracy(answers["label"], as_text(submission, "label"))
