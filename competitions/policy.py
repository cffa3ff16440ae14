"""What edition v2 requires of every submission, before a grader looks at it; see docs/editions.md.

The columns are exactly those of the sample submission, in any order, and numbers are finite and within the range that
`competition.yaml` states. Ids, and cells that are no plain numbers, are checked by the graders.
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

    Columns that depend on the data, such as one for each class, are stated as `*`: they are those of the answers.
    """
    stated = {name: each for name, each in columns.items() if name != OTHER_COLUMNS}
    if OTHER_COLUMNS in columns:
        stated |= {name: columns[OTHER_COLUMNS] for name in answers.columns if name not in stated}
    require_exact_columns(submission, stated)
    limits = {
        name: (-np.inf if each.low is None else each.low, np.inf if each.high is None else each.high)
        for name, each in stated.items()
        if each.numeric
    }
    right = set()
    for low, high in set(limits.values()):
        alike = [name for name, found in limits.items() if found == (low, high)]
        if surely_numbers(submission, alike, low=low, high=high):
            right.update(alike)
    for name, (low, high) in limits.items():
        if name not in right:
            numbers(submission, name, low=low, high=high)
