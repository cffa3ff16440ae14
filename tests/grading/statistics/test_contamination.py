"""Results against the dates of competitions and cutoffs of models, and plain against obfuscated runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.statistics.contamination import (
    around_cutoff,
    between_cutoffs,
    by_competition,
    by_date,
    dated,
    plain_and_obfuscated,
)
from grading.statistics.counting import EVERYTHING, Counting
from grading.statistics.seeds import welch
from tests.grading.page.pages import graded, page, ran, words

ENDED = {f"{name}{n}": f"20{year}-06" for name, year in zip("abcdef", range(17, 23), strict=True) for n in ("", 1, 2)}
POINTS = {name: [1 - n / 20 for n in range(21)] for name in ENDED}


def group(name: str, scores: Mapping[str, float | None], seeds: int = 1, **run: Any) -> tuple[list[Any], list[Any]]:
    """Rows of grades and runs. A score of None is an invalid submission."""
    kind: dict[str, Any] = {"group": name, "agent": "aide"}
    grades = [
        graded(each, seed, score, outcome="valid" if score is not None else "invalid", **kind)
        for each, score in scores.items()
        for seed in range(seeds)
    ]
    return grades, [ran(each, seed, **kind, **run) for each in scores for seed in range(seeds)]


def tables(*groups: tuple[list[Any], list[Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.DataFrame([row for rows, _ in groups for row in rows]), pd.DataFrame(
        [r for _, rows in groups for r in rows]
    )


def by_measure(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows of a table, by what they measure."""
    rows: list[Any] = found.to_dict("records")
    return {row["measure"]: row for row in rows}


MANY = {name: round(0.1 + 0.3 * math.sin(place) ** 2, 3) for place, name in enumerate(ENDED)}
"""Scores in all competitions, three of which ended in each year."""
FALLING = {name: 0.95 - 0.1 * place for place, name in enumerate("abcdef")}


def test_results_that_fall_with_the_date_correlate_with_it() -> None:
    grades, runs = tables(group("g", FALLING, seeds=2))
    found = dated(by_competition(grades, runs, EVERYTHING, POINTS), {**ENDED, "f": None})
    assert found[["competition_id", "ended"]].to_numpy().tolist()[0] == ["a", "2017-06"]
    assert found["percentile"].tolist() == pytest.approx([FALLING[name] for name in "abcde"]), (
        "without an end, not there"
    )
    rows = by_measure(by_date(found))
    assert (rows["percentile"]["n"], rows["percentile"]["spearman"]) == (5, -1.0)
    want = stats.pearsonr([2017.5, 2018.5, 2019.5, 2020.5, 2021.5], found["any_medal"])
    assert rows["any_medal"]["pearson_p"] == pytest.approx(want.pvalue)


def test_an_invalid_run_counts_0_and_an_ungraded_one_as_chosen() -> None:
    grades, runs = tables(group("g", {"a": 0.9, "b": None}))
    assert dated(by_competition(grades, runs, EVERYTHING, POINTS), ENDED)["percentile"].tolist() == pytest.approx(
        [0.9, 0.0]
    )
    more = pd.concat([grades, pd.DataFrame([graded("a", 1, 0.1, group="g", agent="aide")])])
    assert dated(by_competition(more, runs, EVERYTHING, POINTS), ENDED)["percentile"].tolist() == pytest.approx(
        [0.5, 0.0]
    )
    complete = dated(by_competition(more, runs, Counting(incomplete="exclude"), POINTS), ENDED)["percentile"]
    assert complete.tolist() == pytest.approx([0.9, 0.0])
    padded = dated(by_competition(more, runs, Counting(incomplete="fail"), POINTS), ENDED)["percentile"]
    assert padded.tolist() == pytest.approx([0.5, 0.0])


def test_before_and_after_the_cutoff() -> None:
    grades, runs = tables(group("g", MANY))
    found = dated(by_competition(grades, runs, EVERYTHING, POINTS), ENDED)
    row = by_measure(around_cutoff(found, {("g", "aide"): "2019-06"}))["percentile"]
    assert (row["before"], row["after"]) == (9, 9), "a competition of that month may have been seen"
    sides = [[score for name, score in MANY.items() if (ENDED[name] <= "2019-06") == seen] for seen in (True, False)]
    want = stats.ttest_ind(sides[1], sides[0], equal_var=False)
    assert row["difference"] == pytest.approx(np.mean(sides[1]) - np.mean(sides[0]))
    assert row["p_value"] == pytest.approx(want.pvalue)
    assert around_cutoff(found, {}).empty
    late = by_measure(around_cutoff(found, {("g", "aide"): "2022-01"}))["percentile"]
    assert (late["before"], late["after"]) == (15, 3)
    assert math.isnan(late["p_value"]), "three competitions may agree by chance"
    assert math.isfinite(late["difference"])


@pytest.mark.parametrize("seed", range(3))
def test_welchs_interval_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 1, 12).tolist(), rng.normal(1, 4, 5).tolist()
    found, want = welch(a, b), stats.ttest_ind(b, a, equal_var=False)
    assert found.p_value == pytest.approx(want.pvalue)
    low, high = want.confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    huge = welch([value * 1e200 for value in a], [value * 1e200 for value in b])
    assert huge.p_value == pytest.approx(want.pvalue)
    for odd in ([], [1.0], [1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]):
        assert math.isnan(welch(odd, odd).p_value)


def test_plain_and_obfuscated_runs_of_an_agent_are_paired() -> None:
    hidden = {name: score - 0.3 for name, score in FALLING.items()}
    grades, runs = tables(
        group("plain", FALLING), group("hidden", hidden, obfuscated=True), group("mixed", FALLING, obfuscated=None)
    )
    runs.loc[runs["run_group"].eq("mixed") & runs["competition_id"].eq("a"), "obfuscated"] = True
    found = plain_and_obfuscated(grades, runs, POINTS)
    assert found[["plain", "obfuscated"]].drop_duplicates().to_numpy().tolist() == [["plain", "hidden"]]
    rows = by_measure(found)
    row, medals = rows["percentile"], rows["any_medal"]
    assert (row["competitions"], row["difference"]) == pytest.approx((6, -0.3))
    steps = [float(b >= 0.7) - float(a >= 0.7) for a, b in zip(FALLING.values(), hidden.values(), strict=True)]
    assert medals["difference"] == pytest.approx(np.mean(steps))
    assert medals["p_value"] == pytest.approx(stats.ttest_1samp(steps, 0).pvalue)
    assert medals["p_corrected"] >= medals["p_value"]
    # Another edition, another agent or no obfuscated runs are no pair.
    other = grades.assign(edition=["v2" if each == "hidden" else "v1" for each in grades["run_group"]])
    assert plain_and_obfuscated(other, runs, POINTS).empty
    assert plain_and_obfuscated(grades, runs.drop(columns="obfuscated"), POINTS).empty
    assert plain_and_obfuscated(grades, None, POINTS).empty


def test_only_what_both_have_is_paired() -> None:
    grades, runs = tables(group("plain", {"a": 0.9, "b": 0.9}), group("hidden", {"b": 0.8, "c": 0.1}, obfuscated=True))
    row = by_measure(plain_and_obfuscated(grades, runs, POINTS))["percentile"]
    assert (row["competitions"], row["difference"]) == pytest.approx((1, -0.1))
    assert math.isnan(row["p_value"])


def test_the_page_shows_dates_cutoffs_and_pairs() -> None:
    evil = "<script>alert(1)</script>"
    hidden = {name: score - 0.3 for name, score in FALLING.items()}
    grades, runs = tables(group("plain", FALLING, knowledge_cutoff="2019-06"), group(evil, hidden, obfuscated=True))
    facts: dict[str, Any] = {"ended": ENDED, "percentiles": POINTS}
    text = page(grades, runs, **facts)
    shown = words(text)
    assert "95.0 % at 2017, 85.0 % at 2018" in text
    assert text.count('class="cutoff ') == 1
    assert "Human percentile 85.0 (3) 55.0 (3) −30.0" in shown
    assert "Plain against obfuscated descriptions" in shown
    assert evil not in text
    stated = page(grades, runs, **facts, stated_cutoffs={"aide": "2021-01"})
    assert stated.count('class="cutoff ') == 2, "what the operator states counts for all groups of the agent"
    assert "Contamination" not in words(page(grades.head(2), None, **facts))
    assert "Contamination" not in words(page(grades, runs.drop(columns=["obfuscated", "knowledge_cutoff"])))


def test_models_with_different_cutoffs_are_compared_on_what_only_one_can_have_seen() -> None:
    """How hard a competition is cancels: the later model is better where it alone can have seen it."""
    gains = [(0.2 if name[0] in "de" else 0.02) + 0.01 * (place % 3) for place, name in enumerate(MANY)]
    better = {name: score + gain for (name, score), gain in zip(MANY.items(), gains, strict=True)}
    grades, runs = tables(group("early", MANY), group("late", better))
    found = dated(by_competition(grades, runs, EVERYTHING, POINTS), ENDED)
    cutoffs = {("early", "aide"): "2019-12", ("late", "aide"): "2021-12"}
    row = by_measure(between_cutoffs(found, cutoffs))["percentile"]
    assert (row["run_group_early"], row["run_group_late"]) == ("early", "late")
    assert (row["between"], row["others"]) == (6, 12)
    table = found.pivot(index="competition_id", columns="run_group", values="percentile")
    steps = table["late"] - table["early"]
    between = steps.index.str[0].isin(["d", "e"])
    assert row["p_value"] == pytest.approx(stats.ttest_ind(steps[between], steps[~between], equal_var=False).pvalue)
    assert row["difference"] == pytest.approx(0.18)
    few = by_measure(between_cutoffs(found[found["competition_id"] != "d"], cutoffs))["percentile"]
    assert math.isnan(few["p_value"]), "with few competitions, no contamination is too often taken for some"
    assert math.isfinite(few["difference"])
    both = between_cutoffs(found, cutoffs)
    assert (both["p_corrected"].dropna() >= both["p_value"].dropna()).all()
    assert between_cutoffs(found, {**cutoffs, ("early", "aide"): "2021-12"}).empty, "the cutoffs are the same"
    assert between_cutoffs(found, {("late", "aide"): "2021-12"}).empty


def test_p_values_are_corrected_for_all_rows() -> None:
    grades, runs = tables(group("g", MANY), group("h", MANY))
    found = dated(by_competition(grades, runs, EVERYTHING, POINTS), ENDED)
    rows = by_date(found)
    known = sorted(rows["spearman_p"].dropna())
    assert len(known) > 1
    assert rows["p_corrected"].min() == pytest.approx(min(1.0, len(known) * known[0]))
    sides = around_cutoff(found, {("g", "aide"): "2019-12", ("h", "aide"): "2018-12"})
    assert (sides["p_corrected"].dropna() >= sides["p_value"].dropna()).all()
    assert sides["ci_high"].max() <= 1.0
