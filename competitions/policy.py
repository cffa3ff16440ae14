"""What edition v2 requires of every submission, before a grader looks at it; see docs/editions.md.

The columns are exactly those of the sample submission, in any order, and numbers are finite and within the range that
`competition.yaml` states. Ids, and cells that are not plain numbers, are checked by the graders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from competitions.facts import OTHER_COLUMNS, SubmittedColumn
from competitions.scoring.cells import numbers, surely_numbers
from competitions.scoring.checks import require_exact_columns


def require_policy(submission: pd.DataFrame, columns: Mapping[str, SubmittedColumn], answers: Any) -> None:
    """Require the stated columns and ranges. Raises `InvalidSubmission`.

    `*` stands for columns that depend on the data, such as one for each class: they are those of the answers.
    """
    stated = {name: column for name, column in columns.items() if name != OTHER_COLUMNS}
    if OTHER_COLUMNS in columns:
        stated |= {name: columns[OTHER_COLUMNS] for name in answers.columns if name not in stated}
    require_exact_columns(submission, stated)
    limits = {
        name: (-np.inf if column.low is None else column.low, np.inf if column.high is None else column.high)
        for name, column in stated.items()
        if column.numeric
    }
    valid = set()
    for low, high in set(limits.values()):
        same_limits = [name for name, bounds in limits.items() if bounds == (low, high)]
        if surely_numbers(submission, same_limits, low=low, high=high):
            valid.update(same_limits)
    for name, (low, high) in limits.items():
        if name not in valid:
            numbers(submission, name, low=low, high=high)
