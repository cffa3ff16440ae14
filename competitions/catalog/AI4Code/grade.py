import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.ranking import kendall_tau_orders


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    tables = align(submission, answers, on="id", columns=["cell_order"])
    orders, truths = ([cells.split() for cells in as_text(table, "cell_order")] for table in tables)
    for name, order, truth in zip(tables[0]["id"], orders, truths, strict=True):
        if sorted(order) != sorted(truth):
            raise InvalidSubmission(f"`cell_order` of notebook {name} must have each of its cells exactly once.")
    return kendall_tau_orders(truths, orders)
