import pandas as pd
from pandas.api.types import is_numeric_dtype

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.regression import laplace_log_likelihood
from competitions.scoring.reading import Reads

from .columns import ID

READS = Reads(answers=(ID, "FVC", "visited"))

PREDICTED = ["FVC", "Confidence"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_columns(submission, ID, *PREDICTED)
    if edition == "v2":  # v2 fixes rows-may-be-left-out, unscored-rows-unchecked
        align(submission, answers, ID)
    require_known_and_numeric(submission, answers)
    visited = answers["visited"] if "visited" in answers else answers["FVC"].notna()
    # As published, the week is that of the id.
    parts = answers[ID].str.rsplit("_", n=1, expand=True)
    visits = answers.assign(patient=parts[0], week=parts[1].astype(int))[visited].sort_values("week")
    if edition == "v2":  # v2 fixes nan-score, first-visit-scored
        numbers(submission, PREDICTED)
        visits = visits[visits.duplicated("patient")]  # the first one is public
    visits = visits.groupby("patient").tail(3)
    scored = submission[submission[ID].isin(visits[ID])].sort_values(ID)
    visits = visits[visits[ID].isin(scored[ID])].sort_values(ID)  # v1 ignores missing visits
    # A single visit is compared with each of its repetitions.
    if len(scored) != len(visits) and len(visits) != 1:
        raise InvalidSubmission(f"Some visits are given more than once; write one row for each `{ID}`.")
    return laplace_log_likelihood(visits["FVC"], scored["FVC"], scored["Confidence"].fillna(0))


def check(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> None:
    """Require each week once, with numbers, whether or not it is scored: when visits took place is not public."""
    require_columns(submission, ID, *PREDICTED)
    if edition == "v2":  # v2 fixes rows-may-be-left-out, unscored-rows-unchecked
        align(submission, answers, ID)
    require_known_and_numeric(submission, answers)
    if submission[ID].duplicated().any():
        raise InvalidSubmission(f"Some weeks are given more than once; write one row for each `{ID}`.")
    if edition == "v2":  # v2 fixes nan-score
        numbers(submission, PREDICTED)


def require_known_and_numeric(submission: pd.DataFrame, answers: pd.DataFrame) -> None:
    unknown = submission.loc[~submission[ID].isin(answers[ID]), ID]
    if len(unknown):
        raise InvalidSubmission(f"{len(unknown)} rows have an unknown `{ID}`, such as {unknown.iloc[0]}.")
    for name in PREDICTED:
        if not is_numeric_dtype(submission[name]):
            raise InvalidSubmission(f"`{name}` must contain numbers only.")
