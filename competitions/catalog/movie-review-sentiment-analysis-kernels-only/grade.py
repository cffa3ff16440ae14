import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labels
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.reading import Reads

READS = Reads(answers=("PhraseId", "Sentiment"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="PhraseId", columns=["Sentiment"])
    true = answers["Sentiment"]
    return accuracy(true, labels(submission, "Sentiment", true, strict=edition == "v2"))  # v2 fixes text-scores-zero
