import pandas as pd

from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_exact_columns
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    require_exact_columns(submission, answers.columns)
    submission, answers = align(submission, answers, on="image_id")
    classes = ["healthy", "multiple_diseases", "rust", "scab"]
    return mean_columnwise_roc_auc(answers[classes], numbers(submission, classes))
