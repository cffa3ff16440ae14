import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import strings
from competitions.scoring.checks import align
from competitions.scoring.metrics.classification import f1_micro_sets
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, on="id", columns=["attribute_ids"])
    # v2 fixes single-attributes-rejected
    if edition == "v2" and not isinstance(submission["attribute_ids"].dtype, pd.ArrowDtype):
        # If every row has a single attribute, the column is read as numbers.
        submission = submission.convert_dtypes().astype({"attribute_ids": "string"})
    predicted = strings(submission, "attribute_ids", missing="")
    # v2 fixes unknown-attributes-free
    return f1_micro_sets(strings(answers, "attribute_ids"), predicted, count_unknown=edition == "v2")
