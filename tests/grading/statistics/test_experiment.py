"""The published figures: what counts as a failure, and how many runs that are."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from grading.statistics.experiment import experiment, ungraded
from tests.grading.statistics.rows import grade


def test_a_medal_that_is_not_known_is_none() -> None:
    grades = pd.DataFrame([grade("a", 0, "gold"), grade("b", 0, "gold")]).astype({"any_medal": object})
    grades.loc[1, "any_medal"] = math.nan
    assert experiment(grades, ["g"], {"low": ["a", "b"]})["splits"]["low"]["any_medal"]["mean"] == 50.0


@pytest.mark.parametrize(
    ("padded", "number"),
    [
        ({"low": 1, "medium": 2, "high": 3, "all": 6}, 6),
        ({"low": 0, "medium": 0, "high": 0, "all": 5}, 5),
        ({"low": 0, "all": 5, "demo": 2}, 7),
        ({"low": 1}, 1),
        ({}, 0),
    ],
)
def test_failures_count_once_in_a_split_and_in_all(padded: dict[str, int], number: int) -> None:
    assert ungraded({split: {"padded": count, "failed": 0} for split, count in padded.items()}) == number
