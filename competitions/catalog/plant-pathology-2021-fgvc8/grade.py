import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import strings
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_mean_sets, f1_micro_sets
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="image", columns=["labels"])
    predicted = strings(submission, "labels", missing="")
    f1 = f1_mean_sets if edition == "v2" else f1_micro_sets  # v2 fixes unknown-labels-free, micro-average
    return f1(strings(answers, "labels"), predicted)
