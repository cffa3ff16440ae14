import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import choices, labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

from .columns import COMMANDS, SILENCE, UNKNOWN

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="fname", columns=["label"])
    if edition == "v2":  # v2 fixes folder-names-as-labels
        choices(submission, "label", [*COMMANDS, UNKNOWN, SILENCE])
    return accuracy(answers["label"], labels(submission, "label", answers["label"]))
