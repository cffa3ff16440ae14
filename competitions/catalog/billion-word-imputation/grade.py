import numpy as np
import pandas as pd

from grading.cells import texts
from grading.checks import align
from grading.metrics.text import levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=["sentence"])
    predicted = texts(submission, "sentence", missing="" if edition == "v2" else None)
    return float(np.mean(levenshtein(texts(answers, "sentence"), predicted)))
