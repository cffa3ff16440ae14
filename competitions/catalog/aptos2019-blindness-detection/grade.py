import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import quadratic_weighted_kappa
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id_code", columns=["diagnosis"])
    truth, grades = answers["diagnosis"], whole_numbers(submission, "diagnosis")
    if edition == "v2":  # v2 fixes grades-by-position
        numbers(submission, "diagnosis", low=0, high=4)
        return quadratic_weighted_kappa(truth, grades, classes=range(5))
    return quadratic_weighted_kappa(truth, grades)
