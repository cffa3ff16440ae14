import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

READS = Reads(answers=("Id", "Cover_Type"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "Id", ["Cover_Type"])
    truth = answers["Cover_Type"]
    return accuracy(truth, labels(submission, "Cover_Type", truth, strict=edition == "v2"))  # v2 fixes text-scores-zero
