import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import locate
from competitions.scoring.metrics.text import levenshtein
from competitions.scoring.reading import Reads

READS = Reads(answers=("image_id", "InChI"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Mean Levenshtein distance. In v1 an empty cell is compared as the text `nan`."""
    submission, answers, rows = locate(submission, answers, on="image_id", columns=["InChI"])
    if edition == "v2":  # v2 fixes empty-is-nan
        submission = submission.fillna({"InChI": ""})
    truth, predicted = as_strings(answers, "InChI"), as_strings(submission, "InChI")
    return float(levenshtein(truth, predicted, rows=rows).mean())
