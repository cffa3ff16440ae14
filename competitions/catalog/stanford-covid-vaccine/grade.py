import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.regression import mean_columnwise_rmse
from competitions.scoring.reading import Reads

from .columns import SCORED, TARGETS

READS = Reads(texts="arrow")


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require numbers in all rows, also those that are not scored: which these are is not public."""
    align(submission, answers, "id_seqpos", TARGETS)
    if edition == "v1":  # v2 fixes rows-picked-by-file-position
        require_row_numbers(submission, answers)
    numbers(submission, SCORED)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    aligned, truth = align(submission, answers, "id_seqpos", TARGETS)
    keep = truth["keep"]
    if edition == "v2":  # v2 fixes unscored-values-unchecked, rows-picked-by-file-position
        numbers(aligned, TARGETS)
        predicted = aligned[keep]
    else:  # rows are selected by position, so the score is right only in the order of the sample submission
        require_row_numbers(submission, answers)
        ordered = submission.sort_values("id_seqpos")
        predicted = ordered[ordered.index.isin(answers.index[answers["keep"]])]
    return mean_columnwise_rmse(truth.loc[keep, SCORED], numbers(predicted, SCORED))


def require_row_numbers(submission: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Require the index of the answers, in any order: where rows have more cells than the header, it is a column."""
    submitted_rows, expected_rows = submission.index, answers.index
    if not (submitted_rows.equals(expected_rows) or set(submitted_rows) == set(expected_rows)):
        raise InvalidSubmission("Every row must have as many cells as the header has names.")
