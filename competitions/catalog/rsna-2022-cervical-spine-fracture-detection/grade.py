import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.probability import log_loss_terms
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")

EPS = 1e-15


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """Log loss, weighted within each study. Fractures have twice the weight, and `patient_overall` has seven times."""
    submission, answers = align(submission, answers, on="row_id", columns=["fractured"])
    predicted = np.clip(probabilities(submission, "fractured"), EPS, 1 - EPS)
    truth = answers["fractured"].to_numpy()
    # An id is a study and what is predicted of it: as published, other columns of the answers do not count.
    parts = answers["row_id"].str.split("_", n=1, expand=True)
    weights = np.where(parts[1] == "patient_overall", 7, 1) * (1 + truth)
    table = pd.DataFrame({"weight": weights, "loss": weights * log_loss_terms(truth, predicted)})
    studies = table.groupby(parts[0]).sum()
    return float((studies["loss"] / studies["weight"]).mean())
