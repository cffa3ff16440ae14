import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.items import split_items
from competitions.scoring.metrics.ranking import mean_average_precision_at_k
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, ["Image", "Id"])
    submission, answers = align(submission, answers, on="Image")
    truth, guesses = (split_items(as_strings(table, "Id"), " ") for table in (answers, submission))
    return mean_average_precision_at_k(truth, guesses, 5)
