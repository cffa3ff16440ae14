"""Rows with columns that are converted on demand are those of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grading.statistics.records import records

TABLE = pd.DataFrame(
    {
        "whole": [1, 2],
        "number": [0.5, np.nan],
        "flag": [True, False],
        "text": ["a", None],
        "mixed": pd.Series([np.int64(3), np.float64(0.25)], dtype=object),
        "when": pd.to_datetime(["2026-03-01", "NaT"], utc=True),
        "kind": pd.Categorical(["x", "y"]),
    },
    index=[7, 7],
)


def test_rows_are_those_of_pandas() -> None:
    for found, expected in zip(records(TABLE), TABLE.to_dict("records"), strict=True):
        assert list(found) == list(expected)
        assert len(found) == len(expected)
        for name, value in ((str(key), each) for key, each in expected.items()):
            assert type(found[name]) is type(value), name
            assert found[name] == value or (pd.isna(found[name]) and pd.isna(value)), name


def test_a_column_that_is_not_there_is_missed_as_in_a_dictionary() -> None:
    first, _ = records(TABLE)
    assert first.get("another") is None
    with pytest.raises(KeyError, match="another"):
        first["another"]
    assert records(TABLE[:0]) == []
