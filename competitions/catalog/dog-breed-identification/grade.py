import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probability_rows
from competitions.scoring.checks import align
from competitions.scoring.metrics.probability import log_loss
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    breeds = [name for name in answers.columns if name != "id"]
    submission, answers = align(submission, answers, on="id", columns=breeds)
    return log_loss(answers[breeds], probability_rows(submission, breeds))
