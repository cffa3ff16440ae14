import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.text import levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Sum of the edit distances over the number of true gestures."""
    submission, answers = align(submission, answers, on="Id", columns=["Sequence"])
    if edition == "v2":  # a blank cell is a recording without gestures (v2 fixes no-empty-sequence)
        submission = submission.fillna({"Sequence": ""})
    truth = [_gestures(cell) for cell in as_text(answers, "Sequence")]
    predicted = [_gestures(cell) for cell in as_text(submission, "Sequence")]
    return float(levenshtein(truth, predicted).sum() / sum(map(len, truth)))


def _gestures(cell: str) -> list[int]:
    try:
        return [int(item) for item in cell.split()]
    except ValueError as error:
        raise InvalidSubmission(
            f"`Sequence` must be one or more whole numbers separated by spaces, not {cell[:40]!r}."
        ) from error
