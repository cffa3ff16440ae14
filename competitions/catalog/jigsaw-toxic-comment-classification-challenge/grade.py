import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_exact_columns, require_rows, sort_by
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.ranking import mean_columnwise_roc_auc
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require every comment once, with numbers, also those that are not scored: which these are is not public."""
    classes = [name for name in answers.columns if name != "id"]
    if edition == "v1":  # v2 fixes column-order-trusted
        require_exact_columns(submission, answers.columns)
    submission, _ = align(submission, answers, on="id", columns=classes)
    numbers(submission, classes)


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    classes = [name for name in answers.columns if name != "id"]
    if edition == "v2":  # v2 fixes unscored-rows-unchecked, column-order-trusted, repeated-ids-pass
        submission, answers = align(submission, answers, on="id", columns=classes)
        submission = submission[["id", *classes]]
        numbers(submission, classes)
    require_exact_columns(submission, answers.columns)
    require_rows(submission, len(answers))
    if not submission["id"].isin(answers["id"]).all():
        raise InvalidSubmission(
            "`id` has values that are not ids of test comments; copy the ids of the sample submission."
        )
    if edition == "v1":  # v2 has sorted them
        submission, answers = (sort_by(table, "id") for table in (submission, answers))
    # Rows that are not scored have -1 in all six columns.
    scored = answers[answers[classes].sum(axis=1) >= 0]
    submission = submission[submission["id"].isin(scored["id"])]
    if len(submission) != len(scored):
        raise InvalidSubmission("`id` has repeated values; every test comment needs exactly one row.")
    # The submission's columns are matched by position, not by name.
    predicted = numbers(submission, [name for name in submission.columns if name != "id"])
    return mean_columnwise_roc_auc(scored[classes], predicted)
