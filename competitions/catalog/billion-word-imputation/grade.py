import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.metrics.text import levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=["sentence"])
    predicted = texts(submission, "sentence", missing="" if edition == "v2" else None)  # v2 fixes empty-sentences
    return float(np.mean(levenshtein(texts(answers, "sentence"), predicted)))
