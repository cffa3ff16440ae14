import numpy as np
import pandas as pd


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    assert len(submission) == len(answers), "Submission must have the same length as the answers."
    merged = answers.merge(submission, on="id", suffixes=("_true", "_pred"))
    return np.abs(merged["load_true"] - merged["load_pred"]).mean() / answers["scale"].iloc[0]
