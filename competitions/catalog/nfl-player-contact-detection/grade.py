import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, whole_numbers
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import matthews_corrcoef
from competitions.scoring.reading import Reads

READS = Reads(answers=("contact_id", "contact"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="contact_id", columns=["contact"])
    if edition == "v2":  # v2 fixes further-classes
        numbers(submission, "contact", low=0, high=1)
    return matthews_corrcoef(answers["contact"], whole_numbers(submission, "contact"))
