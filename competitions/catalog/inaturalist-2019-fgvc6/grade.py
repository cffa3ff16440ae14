import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.classification import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Error rate of the first guesses."""
    submission, answers = align(submission, answers, on="id", columns=["predicted"])
    try:
        firsts = [cell if isinstance(cell, int) else int(cell.split()[0]) for cell in submission["predicted"].tolist()]
        guesses = np.array(firsts, dtype=np.int64)
    except (ValueError, IndexError, AttributeError, OverflowError) as error:  # blank, float, huge ...
        raise InvalidSubmission("`predicted` must begin with a category id, a whole number, in every row.") from error
    return 1 - accuracy(answers["predicted"], guesses)
