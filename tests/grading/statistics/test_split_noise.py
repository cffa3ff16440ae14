"""Split noise: the standard error of a mean is that of its rows, probabilities belong to it, and luck is counted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from competitions.facts import Resampling
from grading.medals import Thresholds, above_median, medal_for
from grading.statistics.split_noise import PROBABILITIES, medals_by_luck, split_noise
from grading.workers.halves import score_halves

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=100, lower_is_better=False)
LOWER = Thresholds(gold=0.1, silver=0.2, bronze=0.3, median=0.5, teams=100, lower_is_better=True)


def halves_of(
    values: np.ndarray, how: Resampling | None = None, patients: np.ndarray | None = None
) -> dict[str, float]:
    """Split noise of an accuracy, `values` being right (1) or wrong (0) by row."""
    answers = pd.DataFrame({"id": range(len(values)), "patient": range(len(values)) if patients is None else patients})
    submission = pd.DataFrame({"id": range(len(values)), "right": values})
    found = score_halves(
        lambda s, a: float(s["right"].mean()), submission, answers, how, whole=float(values.mean()), draws=2000
    )
    return split_noise(float(values.mean()), found.scores, found.units, found.drawn, HIGHER)


@pytest.mark.parametrize(("rows", "share"), [(59, 0.7), (60, 0.7), (1000, 0.7), (9, 0.5)])
def test_the_standard_error_of_a_mean_is_that_of_its_rows(rows: int, share: float) -> None:
    """s / sqrt(n), also for an odd number of rows, whose halves are not quite halves."""
    values = (np.arange(rows) < share * rows).astype(float)
    assert halves_of(values)["standard_error"] == pytest.approx(values.std(ddof=1) / math.sqrt(rows), rel=0.06)


def test_medals_are_luck_where_the_test_set_is_small() -> None:
    """59 patients with a score at the threshold: every other test set decides otherwise. With 8,000, a little less."""
    small = halves_of((np.arange(59) < 42).astype(float))  # 0.712
    large = halves_of((np.arange(8_000) < 0.72 * 8_000).astype(float))
    assert 0.3 < small["any_medal_probability"] < 0.8
    assert large["any_medal_probability"] > 0.99


@pytest.mark.parametrize("places", [0.5, 1.0, 2.0, -1.0])
def test_the_probability_of_a_medal_is_that_of_a_normal_score_with_twice_the_variance(places: float) -> None:
    """An accuracy so many standard errors above the threshold, on enough rows for the normal distribution."""
    rows = 4_000
    error = math.sqrt(0.7 * 0.3 / rows)
    values = (np.arange(rows) < round(rows * (HIGHER.bronze + places * error))).astype(float)
    stated = halves_of(values)["any_medal_probability"]
    assert stated == pytest.approx(stats.norm.cdf(places / math.sqrt(2)), abs=0.015)


@pytest.mark.parametrize("board", [HIGHER, LOWER])
def test_probabilities_are_shares_of_the_medals_of_all_pairs(board: Thresholds) -> None:
    """The same counted one by one, with the rules of medals."""
    halves, units, drawn = np.random.default_rng(2).normal(0.5, 0.3, 30).tolist(), 61, 30
    stretch = math.sqrt(drawn / (units - drawn))
    others = [round(0.5 + stretch * (a - b), 5) for a, b in itertools.permutations(halves, 2)]
    medals = [medal_for(other, board) for other in others]
    found = split_noise(0.5, halves, units, drawn, board)
    assert found["any_medal_probability"] == pytest.approx(np.mean([medal is not None for medal in medals]))
    for name in ("gold", "silver", "bronze"):
        assert found[f"{name}_medal_probability"] == pytest.approx(medals.count(name) / len(medals))
    assert found["above_median_probability"] == pytest.approx(np.mean([above_median(x, board) for x in others]))


def test_rows_of_one_patient_are_no_further_evidence() -> None:
    """Ten equal rows a patient: the standard error is that of the patients, not of ten times as many rows."""
    patients = (np.arange(100) < 70).astype(float)
    rows = np.repeat(patients, 10)
    grouped = halves_of(rows, Resampling(column="patient"), np.repeat(np.arange(100), 10))["standard_error"]
    assert grouped == pytest.approx(patients.std(ddof=1) / 10, rel=0.06)
    assert halves_of(rows)["standard_error"] < 0.4 * grouped


@given(
    score=st.floats(-1e300, 1e300),
    halves=st.lists(st.floats(-1e300, 1e300), max_size=30),
    units=st.integers(0, 60),
    board=st.sampled_from([HIGHER, LOWER]),
)
def test_any_scores_have_probabilities(score: float, halves: list[float], units: int, board: Thresholds) -> None:
    found = split_noise(score, halves, units, units // 2, board)
    chances = [found[f"{name}_probability"] for name in PROBABILITIES]
    if len(halves) < 2 or units < 2:
        assert all(map(math.isnan, [*chances, found["standard_error"]]))
        return
    assert all(0 <= chance <= 1 for chance in chances)
    gold, silver, bronze = chances[1:4]
    assert gold + silver + bronze == pytest.approx(chances[0])
    assert found["standard_error"] >= 0
    assert split_noise(score, halves[::-1], units, units // 2, board) == pytest.approx(found)


def test_without_noise_a_score_keeps_its_medal() -> None:
    assert split_noise(0.85, [0.5] * 20, 100, 50, HIGHER)["silver_medal_probability"] == 1
    assert split_noise(0.85, [0.5] * 20, 100, 50, LOWER)["any_medal_probability"] == 0


def test_luck_is_counted_by_series() -> None:
    def row(name: str, seed: int, chance: float) -> dict[str, object]:
        who = {"run_group": "g", "agent": "a", "edition": "v1", "competition_id": name, "seed": seed}
        return {**who, "standard_error": 0.1 if not math.isnan(chance) else math.nan, "any_medal_probability": chance}

    rows = [row("x", 0, 0.5), row("x", 1, 0.5), row("y", 0, 1.0), row("y", 1, 0.97), row("z", 0, math.nan)]
    (found,) = medals_by_luck(pd.DataFrame(rows)).to_dict("records")
    assert (found["runs"], found["known"], found["luck"]) == (5, 4, 2)
    assert found["medals"] == pytest.approx(2.97)
    # Seeds share their test set: both medals of x stand or fall together.
    spread = math.sqrt(1.0**2 + (math.sqrt(0.97 * 0.03)) ** 2) / 4
    assert found["sem"] == pytest.approx(spread)
    assert medals_by_luck(pd.DataFrame()).empty
