import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.matching import strings
from competitions.scoring.metrics.classification import accuracy
from competitions.scoring.metrics.items import distinct, split_items
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Error rate of the first guesses."""
    submission, answers = align(submission, answers, on="id", columns=["predicted"])
    try:
        guesses = _firsts(submission)
    except (ValueError, IndexError, AttributeError, OverflowError) as error:  # blank, float, huge ...
        raise InvalidSubmission("`predicted` must begin with a category id, a whole number, in every row.") from error
    return 1 - accuracy(answers["predicted"], guesses)


def _firsts(submission: pd.DataFrame) -> NDArray[np.int64]:
    """The first number of each cell."""
    cells = strings(submission["predicted"])
    if cells is None:
        codes, distinct_cells = distinct(submission["predicted"].to_numpy())
        numbers = [cell if isinstance(cell, int) else int(cell.split()[0]) for cell in distinct_cells]
    else:
        items = split_items(cells)
        if not items.sizes.all():
            raise IndexError("a blank cell")
        firsts = pa.array(items.values).take(pa.array(np.cumsum(items.sizes) - items.sizes))
        codes, distinct_cells = distinct(firsts)
        numbers = list(map(int, distinct_cells))
    return np.array(numbers, dtype=np.int64)[codes]
