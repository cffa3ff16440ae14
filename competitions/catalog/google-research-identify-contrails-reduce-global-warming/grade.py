import pandas as pd

from competitions.scoring.cells import runs
from competitions.scoring.checks import align
from competitions.scoring.metrics.masks import overlap


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    """Dice coefficient of all pixels of all records together; `-` is an empty mask."""
    submission, answers = align(submission, answers, on="record_id", columns=["encoded_pixels"])
    pixels = (answers["height"] * answers["width"]).tolist()
    truth = runs(answers.replace({"encoded_pixels": {"-": ""}}), "encoded_pixels", pixels)
    submission = submission.replace({"encoded_pixels": {"-": ""}})
    predicted = runs(submission, "encoded_pixels", pixels, strict=edition == "v2")
    both = sum(map(overlap, truth, predicted))
    total = sum(mask.area for mask in truth + predicted)
    return 2 * both / total if total else float("nan")
