"""Scores of drives: the mean over trips of two quantiles of distances, whatever the order of trips and rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.geo import haversine

COMPETITION = registry.get("smartphone-decimeter-2022")
PLACE = ["LatitudeDegrees", "LongitudeDegrees"]


def drives(sizes: dict[str, int], rng: np.random.Generator) -> pd.DataFrame:
    trips = np.repeat(list(sizes), list(sizes.values()))
    times = 1_600_000_000_000 + 1000 * np.arange(len(trips))
    table = pd.DataFrame({"tripId": trips, "UnixTimeMillis": times})
    return table.assign(**{name: rng.uniform(-80, 80, len(trips)) for name in PLACE})


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_score_is_the_mean_of_two_quantiles_of_each_trip(edition: Edition) -> None:
    rng = np.random.default_rng(0)
    answers = drives({"b": 9, "one": 1, "two": 2, "a": 40, "three": 3}, rng)
    guess = answers.assign(**{name: answers[name] + rng.normal(0, 0.01, len(answers)) for name in PLACE})
    expected = []
    for trip in ("b", "one", "two", "a", "three"):
        rows = (answers["tripId"] == trip).to_numpy()
        distances = haversine(*answers.loc[rows, PLACE].to_numpy().T, *guess.loc[rows, PLACE].to_numpy().T)
        expected.append(np.quantile(distances, [0.5, 0.95]).mean())
    by_size = guess.sort_values("tripId", kind="stable")  # other trips between, each with its rows in their order
    for submission in (guess, by_size):
        assert COMPETITION.score_table(submission, answers, edition) == pytest.approx(np.mean(expected), rel=1e-12)


def test_an_empty_cell_makes_the_score_of_v1_nan() -> None:
    answers = drives({"a": 3, "b": 5}, np.random.default_rng(0))
    guess = answers.copy()
    guess.loc[4, PLACE[0]] = np.nan
    assert np.isnan(COMPETITION.score_table(guess, answers, "v1"))


def test_a_trip_with_too_few_rows_is_named() -> None:
    answers = drives({"b": 3, "a": 5, "c": 2}, np.random.default_rng(0))
    guess = answers.copy()
    guess.loc[3, "tripId"] = "c"
    with pytest.raises(InvalidSubmission, match=r"^Trip a has 4 rows; 5 are expected\.$"):
        COMPETITION.score_table(guess, answers, "v1")
