import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probability_rows, rescaled_rows
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.probability import log_loss
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    authors = [name for name in answers.columns if name != "id"]
    if edition == "v2":  # v2 fixes rows-not-rescaled, loose-tolerance, columns-by-position
        submission, answers = align(submission, answers, on="id", columns=authors)
        return log_loss(answers[authors], rescaled_rows(submission, authors))
    require_exact_columns(submission, answers.columns)
    if submission.columns[0] != "id":
        raise InvalidSubmission("`id` must be the first column.")
    submission, answers = align(submission, answers, on="id")
    return log_loss(answers[authors], probability_rows(submission, authors))
