import pandas as pd
import pyarrow as pa

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.items import Items, distinct, split_items
from competitions.scoring.metrics.text import levenshtein
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Sum of the edit distances over the number of true gestures."""
    submission, answers = align(submission, answers, on="Id", columns=["Sequence"])
    if edition == "v2":  # a blank cell is a recording without gestures (v2 fixes no-empty-sequence)
        submission = submission.fillna({"Sequence": ""})
    truth, predicted = (_gestures(as_strings(table, "Sequence")) for table in (answers, submission))
    return float(levenshtein(truth, predicted).sum() / truth.sizes.sum())


def _gestures(cells: pa.Array) -> Items:
    items = split_items(cells)
    codes, tokens = distinct(items.values)
    try:
        numbers = [f"{int(token)}" for token in tokens]
    except ValueError as error:
        wrong = next(cell for cell in cells.to_pylist() if not all(map(_is_number, cell.split())))
        raise InvalidSubmission(
            f"`Sequence` must be one or more whole numbers separated by spaces, not {wrong[:40]!r}."
        ) from error
    return Items(pa.array(numbers, pa.string()).take(pa.array(codes)), items.sizes)


def _is_number(token: str) -> bool:
    try:
        int(token)
    except ValueError:
        return False
    return True
