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
from competitions.scoring.cells import numbers
from competitions.scoring.checks import require_exact_columns


def require_policy(submission: pd.DataFrame, columns: Mapping[str, SubmittedColumn], answers: Any) -> None:
    """Require the stated columns and ranges. Raises `InvalidSubmission`.

    Columns that depend on the data, such as one for each class, are stated as `*`: they are those of the answers.
    """
    stated = {name: each for name, each in columns.items() if name != OTHER_COLUMNS}
    if OTHER_COLUMNS in columns:
        stated |= {name: columns[OTHER_COLUMNS] for name in answers.columns if name not in stated}
    require_exact_columns(submission, stated)
    for name, each in stated.items():
        if each.numeric:
            low, high = (-np.inf if each.low is None else each.low), (np.inf if each.high is None else each.high)
            numbers(submission, name, low=low, high=high)
