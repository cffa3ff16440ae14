import numpy as np
import pandas as pd
import pytest

from competitions.scoring.cells import rescaled_rows
from grading import InvalidSubmission


def test_rows_are_divided_by_their_sum() -> None:
    frame = pd.DataFrame({"a": [0.33, 2, True], "b": [0.66, 0, 3]})
    assert np.allclose(rescaled_rows(frame, ["a", "b"]), np.array([[1 / 3, 2 / 3], [1, 0], [0.25, 0.75]]))


@pytest.mark.parametrize("cell", [-0.1, np.nan, np.inf, "x", 0])
def test_what_cannot_be_rescaled_is_rejected(cell: float | str) -> None:
    with pytest.raises(InvalidSubmission):
        rescaled_rows(pd.DataFrame({"a": [cell, 1], "b": [0, 1]}), ["a", "b"])
