import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import strings
from competitions.scoring.checks import locate
from competitions.scoring.metrics.text import levenshtein
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers, rows = locate(submission, answers, on="id", columns=["sentence"])
    predicted = strings(submission, "sentence", missing="" if edition == "v2" else None)  # v2 fixes empty-sentences
    return float(np.mean(levenshtein(strings(answers, "sentence"), predicted, rows=rows)))
