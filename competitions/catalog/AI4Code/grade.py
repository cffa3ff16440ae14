from contextlib import suppress

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    name = min(tables[0]["id"][differences(orders, truths)])
    raise InvalidSubmission(f"`cell_order` of notebook {name} must have each of its cells exactly once.")


def differences(orders: Items, truths: Items) -> NDArray[np.bool_]:
    """Which rows do not have the items of the truth, each as often."""
    wrong = orders.sizes != truths.sizes
    keys = joint_keys(orders, truths)
    order_keys, true_keys = (
        np.sort(side_keys[~wrong[side.rows]]) for side_keys, side in zip(keys, (orders, truths), strict=True)
    )
    wrong[truths.rows[~wrong[truths.rows]][order_keys != true_keys]] = True
    return wrong
