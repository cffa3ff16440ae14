from contextlib import suppress

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_strings
from competitions.scoring.checks import match
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.items import Items, joint_keys, split_items
from competitions.scoring.metrics.ranking import kendall_tau_orders
from competitions.scoring.reading import Reads

READS = Reads(answers=("id", "cell_order"), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = match(submission, answers, on="id", columns=["cell_order"])
    orders, truths = (split_items(as_strings(table, "cell_order")) for table in tables)
    with suppress(ValueError):  # a cell is missing
        if (orders.sizes == truths.sizes).all():
            return kendall_tau_orders(truths, orders)
    name = tables[0]["id"].iloc[first_difference(orders, truths)]
    raise InvalidSubmission(f"`cell_order` of notebook {name} must have each of its cells exactly once.")


def first_difference(orders: Items, truths: Items) -> int:
    """The number of the first row whose items are not those of the truth, each as often."""
    wrong = orders.sizes != truths.sizes
    if not wrong.any():
        given, true = (np.sort(keys) for keys in joint_keys(orders, truths))
        wrong = np.isin(np.arange(len(truths.sizes)), truths.rows[given != true])
    return int(np.argmax(wrong))
