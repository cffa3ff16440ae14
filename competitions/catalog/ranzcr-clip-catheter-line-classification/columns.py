import pandas as pd

from competitions.editions import Edition


def findings(table: pd.DataFrame, edition: Edition) -> list[str]:
    """Return the graded findings: the eleven columns after the id, in v1 without the last two."""
    # v2 fixes nine-of-eleven-labels
    return list(table.columns[1:10] if edition == "v1" else table.columns[1:12])
