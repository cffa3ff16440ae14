import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probability_rows, rescaled_rows
from competitions.scoring.checks import align
from competitions.scoring.metrics.probability import log_loss
from competitions.scoring.reading import Reads

from .columns import VERDICTS

READS = Reads(answers=("id", *VERDICTS), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=VERDICTS)
    if edition == "v2":  # v2 fixes rows-not-rescaled
        return log_loss(answers[VERDICTS], rescaled_rows(submission, VERDICTS))
    return log_loss(answers[VERDICTS], probability_rows(submission, VERDICTS, decimals=6))
