import pandas as pd

from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    # The answers are the id, eleven findings, and the patient; the last two findings are not graded in v1.
    findings = list(answers.columns[1:10] if edition == "v1" else answers.columns[1:12])
    submission, answers = align(submission, answers, on="StudyInstanceUID", columns=findings)
    return mean_columnwise_roc_auc(answers[findings], probabilities(submission, findings))
