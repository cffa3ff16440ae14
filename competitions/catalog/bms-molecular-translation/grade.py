import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align
from competitions.scoring.metrics.text import levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean Levenshtein distance. In v1 an empty cell is compared as the text `nan`."""
    submission, answers = align(submission, answers, on="image_id", columns=["InChI"])
    if edition == "v2":
        submission = submission.fillna({"InChI": ""})
    return float(levenshtein(as_text(answers, "InChI"), as_text(submission, "InChI")).mean())
