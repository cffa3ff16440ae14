import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import texts
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_micro_sets


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=["attribute_ids"])
    # v2 fixes single-attributes-rejected
    if edition == "v2":  # if every row has a single attribute, pandas reads the column as numbers
        submission = submission.convert_dtypes().astype({"attribute_ids": "string"})
    predicted = texts(submission, "attribute_ids", missing="")
    # v2 fixes unknown-attributes-free
    return f1_micro_sets(answers["attribute_ids"].tolist(), predicted, count_unknown=edition == "v2")
