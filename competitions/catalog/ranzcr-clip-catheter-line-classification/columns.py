import pandas as pd

from competitions.editions import Edition


def findings(table: pd.DataFrame, edition: Edition) -> list[str]:
    """The graded findings: the eleven columns after the id; v1 leaves out the last two."""
    return list(table.columns[1:10] if edition == "v1" else table.columns[1:12])
