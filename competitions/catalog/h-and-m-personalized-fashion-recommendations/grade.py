import numpy as np
import pandas as pd
import pyarrow.compute as pc

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import align, is_ascending, require_exact_columns, select
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.matching import positions_among
from competitions.scoring.metrics.items import Items, split_items
from competitions.scoring.metrics.ranking import mean_average_precision_at_k
from competitions.scoring.reading import Reads

READS = Reads(answers=("customer_id", "prediction"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, ["customer_id", "prediction"])
    # v2 fixes buyers-revealed, sample-scores-zero, repeated-customers
    if edition == "v2":  # v1 compares articles as text, and a repeated customer shifts all later rows
        submission, answers = align(submission, answers, "customer_id")
        bought = answers["prediction"].notna()
        submission, answers = select(submission, bought), select(answers, bought)
    customers = answers["customer_id"]
    rows = positions_among(submission["customer_id"], customers) if is_ascending(customers) else None
    if rows is not None:  # each customer once, in the order of the answers
        submission = submission[["prediction"]].take(rows)
    else:
        submission = submission[submission["customer_id"].isin(customers)]
        if not customers.isin(submission["customer_id"]).all():
            raise InvalidSubmission("There must be a row for every customer of the sample submission.")
        submission, answers = by_customer(submission), by_customer(answers)
    return mean_average_precision_at_k(articles(answers, edition), articles(submission, edition), 12)


def by_customer(rows: pd.DataFrame) -> pd.DataFrame:
    # The sorting algorithm decides the order of rows with the same customer.
    return rows.iloc[np.argsort(rows["customer_id"].to_numpy(dtype=object), kind="quicksort")]


def articles(rows: pd.DataFrame, edition: Edition) -> Items:
    items = split_items(as_strings(rows, "prediction"), " ")
    # v2 fixes leading-zeros-lost
    return items._replace(values=pc.utf8_ltrim(items.values, "0")) if edition == "v2" else items
