"""Competitions with known leaks against the others, within complexity splits."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.page.contamination import contamination_section
from grading.page.results import Results
from grading.statistics.contamination import by_competition
from grading.statistics.counting import EVERYTHING
from grading.statistics.leakage import leaky_against_others, stratified_difference
from tests.grading.statistics.rows import grade


def test_it_is_the_coefficient_of_a_regression_with_a_constant_for_each_stratum() -> None:
    generator = np.random.default_rng(0)
    for _ in range(30):
        count = int(generator.integers(8, 80))
        strata = generator.integers(0, 3, count)
        chosen = generator.random(count) < 0.4
        values = generator.random(count)
        found = stratified_difference(values.tolist(), chosen.tolist(), [str(each) for each in strata])
        design = np.column_stack([chosen, *(strata == each for each in np.unique(strata))]).astype(float)
        used = [s for s in np.unique(strata) if 0 < chosen[strata == s].sum() < (strata == s).sum()]
        keep = np.isin(strata, used)
        design = design[keep][:, [True, *(s in used for s in np.unique(strata))]]
        solution, *_ = np.linalg.lstsq(design, values[keep], rcond=None)
        residuals = values[keep] - design @ solution
        degrees = len(residuals) - design.shape[1]
        error = math.sqrt(residuals @ residuals / degrees * np.linalg.inv(design.T @ design)[0, 0])
        assert found.difference == pytest.approx(solution[0])
        assert found.p_value == pytest.approx(2 * stats.t.sf(abs(solution[0]) / error, degrees))
        reach = stats.t.ppf(0.975, degrees) * error
        assert found.interval.low == pytest.approx(max(-1, solution[0] - reach))
        assert found.interval.high == pytest.approx(min(1, solution[0] + reach))
        assert (found.chosen, found.others) == (chosen[keep].sum(), (~chosen[keep]).sum())


def test_the_complexity_of_leaky_competitions_does_not_count() -> None:
    """Leaks are in easy competitions, in which an agent is as good without."""
    values = [1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    leaky = [True, True, True, True, False, True, False, False, False]
    splits = ["low"] * 5 + ["high"] * 4
    found = stratified_difference(values, leaky, splits)
    low, high = 0.75 - 1.0, 0.0 - 1 / 3
    assert found.difference == pytest.approx((low * 0.8 + high * 0.75) / 1.55)
    assert stratified_difference(values[:5], [True] * 5, splits[:5]).chosen == 0
    equal = stratified_difference([1.0] * 4, [True, True, False, False], ["low"] * 4)
    assert (equal.difference, equal.p_value != equal.p_value) == (0.0, True), "without spread there is no test"


def test_each_edition_has_its_own_leaks() -> None:
    names = [f"c{number}" for number in range(8)]
    medals = dict(zip(names, ["gold", "gold", None, "gold", None, None, "gold", None], strict=True))
    grades = pd.DataFrame([grade(name, 0, medal) for name, medal in medals.items()])
    found = by_competition(grades, None, EVERYTHING, {})
    (row,) = leaky_against_others(found, {"v1": set(names[:3])}).to_dict("records")
    assert (row["measure"], row["leaky"], row["others"]) == ("any_medal", 3, 5)
    assert (row["mean_leaky"], row["mean_others"]) == pytest.approx((2 / 3, 2 / 5))
    assert row["difference"] == pytest.approx(2 / 3 - 2 / 5)
    assert row["p_corrected"] == row["p_value"] == pytest.approx(stats.ttest_ind([1, 1, 0], [1, 0, 0, 1, 0]).pvalue), (
        "with one stratum it is the t-test of two samples"
    )
    assert leaky_against_others(found, {"v2": set(names[:3])}).empty
    results = Results(grades, leaks={("v1", name): ["labels"] for name in names[:3]})
    section = contamination_section(results.view, results)
    assert section is not None
    assert section.leaks[0][1][:3] == ["Any medal", "66.7 (3)", "40.0 (5)"]
