import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers, require_numeric, require_row_sums
from competitions.scoring.checks import require_columns, require_rows, require_same_ids
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.probability import kl_divergence
from competitions.scoring.notes import note_order_of_repeated_ids
from competitions.scoring.reading import Reads

from .columns import VOTES

READS = Reads(answers=("eeg_id", *VOTES))

EPS = 1e-15


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Kullback-Leibler divergence of the experts' votes from the predictions, paired by position after sorting."""
    require_columns(submission, "eeg_id", *VOTES)
    require_rows(submission, len(answers))
    require_same_ids(submission, answers, on="eeg_id")
    other_columns = [name for name in submission.columns if name not in {"eeg_id", *VOTES}]
    require_numeric(submission, *VOTES, *other_columns, booleans=False)
    note_order_of_repeated_ids(submission, answers, "eeg_id")
    # Rows of one recording keep their order. The published sort is unstable, so its order depends on the machine.
    # In v2 a recording has one row, so v2 fixes rows-matched-by-position without a condition here.
    submission, answers = (frame.sort_values("eeg_id", kind="stable") for frame in (submission, answers))
    # v2 fixes missing-values-score
    values = numbers(submission, VOTES + other_columns, low=0, high=1, missing=edition == "v1")
    predicted = values[:, : len(VOTES)]
    require_row_sums(predicted, decimals=5)
    if not np.allclose(np.nansum(values, axis=1), 1, rtol=1e-5, atol=1e-8):
        raise InvalidSubmission(
            f"Additional columns such as `{other_columns[0]}` must be 0 or removed: they count in the row sums."
        )
    votes = answers[VOTES].div(answers[VOTES].sum(axis=1), axis=0)
    # v1 does not clip columns of integers.
    clip = [edition == "v2" or submission[name].dtype.kind == "f" for name in VOTES]  # v2 fixes integers-not-clipped
    return kl_divergence(votes, np.where(clip, np.clip(predicted, EPS, 1 - EPS), predicted), eps=None)
