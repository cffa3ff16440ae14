import pandas as pd

from grading.cells import as_text
from grading.checks import align, require_exact_columns
from grading.metrics.ranking import mean_average_precision_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    require_exact_columns(submission, ["Image", "Id"])
    submission, answers = align(submission, answers, on="Image")
    truth = [set(whale.split(" ")) for whale in answers["Id"]]
    guesses = [cell.split(" ") for cell in as_text(submission, "Id")]
    return mean_average_precision_at_k(truth, guesses, 5)
