"""Properties that hold for whatever is graded: no input raises, and no figure contradicts another."""

from __future__ import annotations

import math
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grading.medals import Thresholds, above_median, medal_for
from grading.report import GradedSubmission, Outcome, competition_report
from grading.statistics.aggregate import aggregate
from grading.statistics.attempts import best_of, competition_table, pass_at
from grading.statistics.compare import compare
from grading.statistics.correlation import correlation
from grading.statistics.counting import Counting
from grading.statistics.over_time import over_time
from grading.statistics.seeds import (
    expected_best,
    holm,
    mean,
    paired_p_value,
    smallest_difference,
    standard_error,
    t_interval,
    welch,
)

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=100, lower_is_better=False)
POINTS = [1 - n / 20 for n in range(21)]
SPLITS = {"a": "low", "b": "low", "c": "medium", "d": "high", "e": "dev"}
numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([1.7e308, 1.6e308, -1.7e308, 5e-324])
)
scores = st.one_of(
    st.none(),
    st.just("failed"),
    st.just("missing"),
    numbers,
    st.sampled_from([0.95, 0.85, 0.75, 0.6, 0.5, 0.1, 1e200, -1e200, math.inf, -math.inf, math.nan]),
)
tables = st.dictionaries(st.tuples(st.sampled_from(sorted(SPLITS)), st.integers(0, 2)), scores, min_size=1, max_size=15)
treatments = st.sampled_from(["available", "exclude", "fail"])
examples = settings(max_examples=25)


def grades_of(table: dict[tuple[str, int], Any], **more: Any) -> pd.DataFrame:
    """Rows of tables/grades. A score of None is an invalid submission."""
    rows = []
    for (name, seed), score in table.items():
        outcome: Outcome = "invalid" if score is None else cast("Outcome", score) if isinstance(score, str) else "valid"
        value = score if outcome == "valid" else None
        report = competition_report(name, value, HIGHER, submission_path="s", submission_exists=outcome != "missing")
        who: dict[str, Any] = {"run_group": "g", "run_id": f"g-{name}-{seed}", "seed": seed, "agent": "agent"}
        facts = {"edition": "v1", "complexity": SPLITS[name], "category": "Tabular", **more}
        rows.append(GradedSubmission(report, outcome, None, **who, **facts).to_row())
    return pd.DataFrame(rows)


def snapshots_of(table: dict[tuple[str, int], Any]) -> pd.DataFrame:
    """One snapshot for every submission, after an hour per seed."""
    rows: list[dict[str, Any]] = []
    for (name, seed), score in table.items():
        if not isinstance(score, str):
            flags = {"any_medal": medal_for(score, HIGHER) is not None, "above_median": above_median(score, HIGHER)}
            who = {"run_group": "g", "run_id": f"g-{name}-{seed}", "competition_id": name, "edition": "v1"}
            rows.append({**who, "seed": seed, "at_seconds": 3600.0 * (seed + 1), "score": score, **flags})
    return pd.DataFrame(rows)


def means(grades: pd.DataFrame, **counting: Any) -> dict[tuple[str, str], float]:
    found = aggregate(grades, **counting).rates
    return {(row["split"], row["rate"]): row["mean"] for row in found.to_dict("records")}


@examples
@given(st.lists(numbers, max_size=6), st.integers(1, 4), st.booleans())
@example([1.7e308, 1.6e308], 1, True)
def test_no_number_raises(values: list[float], k: int, lower: bool) -> None:
    for statistic in (mean, standard_error, t_interval, paired_p_value):
        statistic(values)
    expected_best(values, len(values) + 2, k, lower)
    correlation(values, values[::-1])
    welch(values, values[1:])
    smallest_difference(standard_error(values), len(values) - 1)
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        assert min(finite) <= mean(finite) <= max(finite)
    if len(finite) > 1:
        assert standard_error(finite) >= 0


@pytest.mark.parametrize("huge", [1e200, -1e200, 1.7e308, math.inf, -math.inf, math.nan])
def test_one_diverged_score_costs_no_table(huge: float) -> None:
    grades = grades_of({("a", 0): huge, ("a", 1): 0.95, ("b", 0): 0.6, ("b", 1): 0.75})
    assert len(competition_table(grades, {"a": POINTS})) == 2
    assert len(best_of(grades)) == 4
    row = competition_table(grades).set_index("competition_id").loc["b"]
    assert row["mean_score"] == pytest.approx(0.675), "the other competition is what it was"
    compare(grades, grades_of({("a", 0): -huge, ("b", 0): 0.6}))


@examples
@given(tables, treatments)
def test_no_table_raises_and_shares_are_shares(table: Any, incomplete: Any) -> None:
    grades, snapshots = grades_of(table), snapshots_of(table)
    counting = Counting(incomplete=incomplete)
    rates = aggregate(grades, incomplete=incomplete).rates
    for name in ("mean", "ci_low", "ci_high", "both_low", "both_high", "if_failed", "if_earned"):
        assert rates[name].dropna().between(0, 1).all()
    assert (rates["if_failed"] <= rates["if_earned"]).all()
    known = rates.dropna()
    for kind in ("ci", "both"):
        assert (known[f"{kind}_low"] <= known["mean"] + 1e-12).all()
        assert (known["mean"] <= known[f"{kind}_high"] + 1e-12).all()
        assert (known[f"{kind}_low"] < known[f"{kind}_high"]).all(), "no interval is a point"
    shares = competition_table(grades, dict.fromkeys(SPLITS, POINTS), counting)["human_percentile"].dropna()
    assert shares.between(0, 100).all()
    over_time(grades, snapshots, counting=counting)
    best_of(grades, counting=counting)
    ends = compare(grades, grades, dict.fromkeys(SPLITS, POINTS)).differences
    assert all(ends[name].dropna().between(-1, 1).all() for name in ("ci_low", "ci_high"))
    for by in ("complexity", "category"):
        aggregate(grades, by=by)


@examples
@given(tables, treatments, st.lists(st.sampled_from([0.95, 0.6, 0.1]), min_size=15))
def test_the_curve_ends_at_the_headline(table: Any, incomplete: Any, meanwhile: list[float]) -> None:
    """Whatever the newest snapshot of a run was worth, and whether it has one."""
    grades = grades_of(table)
    shown = dict(zip(table, meanwhile, strict=False))
    snapshots = snapshots_of({key: score if isinstance(score, str) else shown[key] for key, score in table.items()})
    if snapshots.empty:
        return
    headline = means(grades, incomplete=incomplete)
    curve = over_time(grades, snapshots, counting=Counting(incomplete=incomplete))
    for key, part in curve.groupby(["split", "rate"]):
        expected = headline[cast("tuple[str, str]", key)]
        assert part.sort_values("at_seconds")["mean"].tolist()[-1] == pytest.approx(expected)


@examples
@given(tables, st.sampled_from(["exclude", "fail"]))
def test_pass_at_1_is_the_headline_and_more_attempts_never_hurt(table: Any, incomplete: Any) -> None:
    grades = grades_of(table)
    headline = means(grades, incomplete=incomplete)
    found = pass_at(grades, counting=Counting(incomplete=incomplete))
    for key, part in found.groupby(["split", "rate"]):
        values = part.sort_values("k")["mean"].tolist()
        assert values[0] == pytest.approx(headline[cast("tuple[str, str]", key)])
        assert values == sorted(values)
        assert part["competitions"].nunique() == 1


@examples
@given(tables, st.data())
def test_a_worse_run_never_raises_a_mean(table: Any, data: Any) -> None:
    """A score falls, or its submission is invalid or missing, and the seed still counts."""
    table = {key: 0.6 if score == "failed" else score for key, score in table.items()}
    key = data.draw(st.sampled_from(sorted(table)))
    before = table[key]
    worse: list[Any] = [None, "missing", math.nan]
    if isinstance(before, float) and not math.isnan(before):
        worse += [score for score in (0.75, 0.5, 0.1, -math.inf) if score < before]
    after = {**table, key: data.draw(st.sampled_from(worse))}
    if before is None:
        after[key] = "missing"
    order = ("any_medal", "gold_medal", "above_median")
    for incomplete in ("available", "exclude", "fail"):
        old, new = (means(grades_of(each), incomplete=incomplete) for each in (table, after))
        for place, value in old.items():
            assert place[1] not in order or math.isnan(value) or new[place] <= value + 1e-12
    shares = [competition_table(grades_of(each), dict.fromkeys(SPLITS, POINTS)) for each in (table, after)]
    assert shares[1]["human_percentile"].sum() <= shares[0]["human_percentile"].sum() + 1e-9


@examples
@given(tables, st.permutations([0, 1, 2]))
def test_permuting_seeds_changes_nothing(table: Any, order: list[int]) -> None:
    grades, renamed = grades_of(table), grades_of({(name, order[seed]): s for (name, seed), s in table.items()})
    same = ["split", "rate", "mean", "sem", "ci_low", "ci_high", "seeds", "competitions"]
    for incomplete in ("available", "exclude", "fail"):
        first, second = (aggregate(each, incomplete=cast("Any", incomplete)).rates[same] for each in (grades, renamed))
        pd.testing.assert_frame_equal(first, second)
    pd.testing.assert_frame_equal(pass_at(grades), pass_at(renamed))
    columns = ["competition_id", "attempts", "mean_score", "score_sem", "best_score", "human_percentile"]
    points = dict.fromkeys(SPLITS, POINTS)
    first, second = (competition_table(each, points)[columns] for each in (grades, renamed))
    pd.testing.assert_frame_equal(first, second)


@examples
@given(st.lists(st.floats(0, 1), max_size=12))
def test_corrected_p_values_are_never_smaller_and_keep_their_order(values: list[float]) -> None:
    found = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, found, strict=True))
    ranked = [q for _, q in sorted(zip(values, found, strict=True))]
    assert ranked == sorted(ranked)


def test_equal_differences_are_no_evidence_because_they_were_rounded() -> None:
    """One competition went from 2 of 3 seeds to 3, another from 1 to 2: the differences differ in the last digit."""
    steps = [1 - 2 / 3, 2 / 3 - 1 / 3]
    assert steps[0] != steps[1]
    assert standard_error(steps) == 0
    assert paired_p_value(steps) == 0.5, "as two equal differences"
    shares = [[n / 20 - m / 20 for n, m in ((7, 6), (20, 19), (3, 2), (1, 0))]]
    assert paired_p_value(shares[0]) == 0.125
    assert standard_error([1e200, 1e200 * (1 + 1e-9)]) > 0
    assert standard_error([-1e-17, 1e-17]) > 0
    found = correlation([1, 2, 3, 4], [*steps, *steps])
    assert math.isnan(found.pearson)
    assert math.isnan(found.spearman)


def test_a_rate_that_is_not_known_is_no_success() -> None:
    grades = grades_of({("a", 0): 0.95, ("b", 0): 0.95})
    grades["any_medal"] = grades["any_medal"].astype(object)
    grades.loc[grades["competition_id"] == "b", "any_medal"] = math.nan
    assert means(grades)["low", "any_medal"] == 0.5


@pytest.mark.parametrize("scale", [1e-308, 1e150, 1e308])
def test_a_correlation_does_not_depend_on_the_unit(scale: float) -> None:
    values = [1.0, 0.25, 0.5, 1.5, 0.75]
    found = correlation([scale * value for value in values], [1.0, 2.0, 3.0, 4.0, 5.0])
    plain = correlation(values, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.pearson, found.spearman) == (pytest.approx(plain.pearson), plain.spearman)
    endless = correlation([math.inf, *values], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert math.isnan(endless.pearson)
    assert endless.spearman == correlation([2.0, *values], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).spearman


def test_the_correction_is_that_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, math.nan]) == pytest.approx([0.03, 0.06, 0.06, math.nan], nan_ok=True)
