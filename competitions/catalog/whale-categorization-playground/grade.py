import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.ranking import mean_average_precision_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, ["Image", "Id"])
    submission, answers = align(submission, answers, on="Image")
    truth = [set(whale.split(" ")) for whale in answers["Id"]]
    guesses = [cell.split(" ") for cell in as_text(submission, "Id")]
    return mean_average_precision_at_k(truth, guesses, 5)
