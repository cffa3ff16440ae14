import pandas as pd

from mlebench.grade_helpers import InvalidSubmissionError

from .classes import CLASSES


def grade_cells(submission: pd.DataFrame, answers: list[dict]) -> float:
    if not {"cell", "types"} <= set(submission.columns):
        raise InvalidSubmissionError(f"Expected columns cell, types\nGot {submission.columns}")
    predicted = dict(zip(submission["cell"], submission["types"]))
    missing = {answer["cell"] for answer in answers} - set(predicted)
    if missing:
        raise InvalidSubmissionError(f"{len(missing)} cells are missing")
    scores = []
    for answer in answers:
        guess, truth = set(str(predicted[answer["cell"]]).split()), set(answer["types"])
        if guess - set(CLASSES):
            raise InvalidSubmissionError(f"unknown types {guess - set(CLASSES)}")
        scores.append(len(guess & truth) / len(guess | truth))
    return sum(scores) / len(scores)
