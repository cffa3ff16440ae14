"""Splits at random: those of scikit-learn, with which the published test sets are drawn."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from competitions.preparing.holdout import hold_out

SIZES = st.none() | st.integers(1, 60) | st.floats(0.01, 0.99)


@given(st.integers(1, 60), SIZES, SIZES, st.integers(0, 3))
@example(3, 0.5, 0.6, 0)
def test_parts_are_those_of_scikit_learn(
    count: int, test_size: float | None, train_size: float | None, seed: int
) -> None:
    rows = list(range(count))
    if test_size is train_size is None:
        with pytest.raises(ValueError, match="needs the size"):
            hold_out(rows)
        return
    try:
        expected = train_test_split(rows, test_size=test_size, train_size=train_size, random_state=seed)
    except ValueError:
        with pytest.raises(ValueError, match="cannot be split"):
            hold_out(rows, test_size, seed, train_size=train_size)
        return
    assert list(hold_out(rows, test_size, seed, train_size=train_size)) == expected


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"id": [f"a{n}" for n in range(9)], "y": range(9)}, index=range(20, 29)),
        pd.Series([f"a{n}" for n in range(9)], index=list("ihgfedcba")),
        pd.Series([f"a{n}" for n in range(9)], dtype="string").array,
        np.arange(18).reshape(9, 2),
        [{"n": n} for n in range(9)],
    ],
    ids=["frame", "series", "extension array", "array", "list"],
)
def test_every_kind_of_rows_stays_what_it_is(rows: Any) -> None:
    for ours, theirs in zip(hold_out(rows, 0.3), train_test_split(rows, test_size=0.3, random_state=0), strict=True):
        assert type(ours) is type(theirs)
        if isinstance(ours, pd.DataFrame):
            pd.testing.assert_frame_equal(ours, theirs)
        elif isinstance(ours, pd.Series):
            pd.testing.assert_series_equal(ours, theirs)
        else:
            assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()


def test_a_process_that_splits_need_not_wait_for_scikit_learn() -> None:
    code = "import sys; from competitions.preparing.holdout import hold_out; hold_out([1, 2], 1); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in found
    assert "sklearn" not in found
    assert "pandas" not in found
