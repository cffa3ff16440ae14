import pandas as pd

from competitions.scoring.cells import probability_rows, rescaled_rows
from competitions.scoring.checks import align
from competitions.scoring.metrics.probability import log_loss

VERDICTS = ["winner_model_a", "winner_model_b", "winner_tie"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    submission, answers = align(submission, answers, on="id", columns=VERDICTS)
    if edition == "v2":
        return log_loss(answers[VERDICTS], rescaled_rows(submission, VERDICTS))
    return log_loss(answers[VERDICTS], probability_rows(submission, VERDICTS, decimals=6))
