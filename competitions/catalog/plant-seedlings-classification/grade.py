import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import choices, texts
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

SPECIES = (
    "Black-grass",
    "Charlock",
    "Cleavers",
    "Common Chickweed",
    "Common wheat",
    "Fat Hen",
    "Loose Silky-bent",
    "Maize",
    "Scentless Mayweed",
    "Shepherds Purse",
    "Small-flowered Cranesbill",
    "Sugar beet",
)

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="file", columns=["species"])
    if submission["species"].isna().all():
        raise InvalidSubmission("`species` is empty in every row; give the species of every image.")
    if edition == "v2":  # v2 fixes any-text-accepted
        choices(submission, "species", SPECIES)
    # Every image has one true and one predicted class: the micro-averaged F1 is the accuracy.
    return accuracy(answers["species"], texts(submission, "species", missing="nan"))
