"""Means and standard errors over seeds, by split; what is incomplete is said and treated as chosen."""

import math
import random
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from grading.statistics.aggregate import Incomplete, aggregate
from grading.statistics.series import RATES, latest_grades
from tests.grading.statistics.rows import grade, rate

EMPTY = pd.DataFrame(columns=["run_group", "run_id", "competition_id", "seed", "agent", "edition", "outcome", *RATES])


def test_the_mean_over_seeds_of_the_share_of_competitions() -> None:
    # seed 1: 2 of 2 competitions with a medal, seed 2: 1 of 2, seed 3: none.
    medals = {1: ("gold", "bronze"), 2: ("silver", None), 3: (None, None)}
    grades = pd.DataFrame(
        [grade(c, seed, medal) for seed, pair in medals.items() for c, medal in zip("ab", pair, strict=True)]
    )
    found = aggregate(grades)
    row = rate(found, "low")
    assert row["mean"] == pytest.approx(0.5)
    assert row["sem"] == pytest.approx(0.5 / math.sqrt(3))  # sample standard deviation of 1, 0.5, 0 over sqrt(3)
    assert (row["seeds"], row["competitions"]) == (3, 2)
    assert [rate(found, "low", f"{m}_medal")["mean"] for m in ("gold", "silver", "bronze")] == pytest.approx(
        [1 / 6] * 3
    )
    by_seed = found.by_seed[(found.by_seed["split"] == "low") & (found.by_seed["rate"] == "any_medal")]
    assert dict(zip(by_seed["seed"], by_seed["value"], strict=True)) == {1: 1.0, 2: 0.5, 3: 0.0}


def test_submissions_count_apart_from_medals() -> None:
    grades = pd.DataFrame(
        [grade("a", 1, outcome="missing"), grade("b", 1, outcome="invalid"), grade("c", 1, "gold"), grade("d", 1)]
    )
    found = aggregate(grades)
    assert rate(found, "low", "submission_exists")["mean"] == 0.75
    assert rate(found, "low", "valid_submission")["mean"] == 0.5
    assert rate(found, "low", "any_medal")["mean"] == 0.25
    assert found.gaps.empty  # an agent that hands in nothing, or rubbish, has failed: nothing is unknown about it


def test_all_is_low_medium_and_high_and_counts_competitions_not_splits() -> None:
    grades = pd.DataFrame(
        [
            *(grade(c, 1, "gold", split="low") for c in "abc"),
            grade("d", 1, split="medium"),
            grade("e", 1, split="high"),
            grade("f", 1, split="dev"),
            grade("g", 1, split="demo"),
        ]
    )
    found = aggregate(grades)
    assert list(dict.fromkeys(found.rates["split"])) == ["low", "medium", "high", "all", "dev", "demo"]
    assert rate(found, "all")["mean"] == pytest.approx(3 / 5)
    assert rate(found, "all")["competitions"] == 5
    assert rate(found, "demo")["competitions"] == 1


def test_a_group_of_demo_competitions_has_no_all() -> None:
    assert set(aggregate(pd.DataFrame([grade("a", 1, split="demo")])).rates["split"]) == {"demo"}


def test_one_seed_has_no_standard_error() -> None:
    row = rate(aggregate(pd.DataFrame([grade("a", 1, "gold")])), "low")
    assert row["mean"] == 1
    assert math.isnan(row["sem"])
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(0.025), 1), "one success tells little"


def test_seeds_are_told_by_their_number_not_by_position() -> None:
    # Three competitions, rows in any order: only seed 7 earned medals. By position some "seeds" would have one.
    rows = [grade(c, seed, "gold" if seed == 7 else None) for c in "abc" for seed in (7, 2, 11)]
    for shuffle in range(5):
        random.Random(shuffle).shuffle(rows)
        found = aggregate(pd.DataFrame(rows))
        assert rate(found, "low")["mean"] == pytest.approx(1 / 3)
        assert rate(found, "low")["sem"] == pytest.approx(1 / 3)


def test_without_a_seed_the_run_identifies_it() -> None:
    rows = [grade(c, None, "gold" if run == "x" else None, run_id=run) for c in "ab" for run in ("x", "y")]
    found = aggregate(pd.DataFrame(rows))
    assert rate(found, "low")["seeds"] == 2
    assert set(found.by_seed["seed"]) == {"x", "y"}


INCOMPLETE = pd.DataFrame(
    [
        *(grade(c, 1, "gold") for c in "ab"),
        *(grade(c, 2, "gold") for c in "ab"),
        grade("a", 3, "gold"),  # seed 3 has no grade for b
        *(grade("c", seed, split="high") for seed in (1, 2, 3)),
    ]
)


def test_each_competition_counts_with_its_graded_runs_and_what_is_missing_is_bounded() -> None:
    grades = pd.DataFrame([*(grade("a", s, "gold") for s in (1, 2, 3)), grade("b", 1), grade("b", 2, "gold")])
    row = rate(aggregate(grades), "low")
    assert row["mean"] == pytest.approx((1 + 1 / 2) / 2)
    assert (row["runs"], row["missing"], row["seeds"], row["competitions"]) == (5, 1, 3, 2)
    assert (row["if_failed"], row["if_earned"]) == pytest.approx(((1 + 1 / 3) / 2, (1 + 2 / 3) / 2))


def test_incomplete_seeds_are_excluded_from_the_splits_where_they_lack_something() -> None:
    found = aggregate(INCOMPLETE, incomplete="exclude")
    assert (rate(found, "low")["mean"], rate(found, "low")["seeds"]) == (1, 2)
    assert rate(found, "high")["seeds"] == 3
    assert rate(found, "all")["seeds"] == 2
    uncounted = found.by_seed[~found.by_seed["counted"]]
    assert set(uncounted["seed"]) == {3}
    assert uncounted["value"].isna().all()


def test_incomplete_seeds_can_be_counted_as_failures() -> None:
    found = aggregate(INCOMPLETE, incomplete="fail")
    assert rate(found, "low")["mean"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert rate(found, "low")["seeds"] == 3
    assert rate(found, "all", "submission_exists")["mean"] == pytest.approx((1 + 1 + 2 / 3) / 3)


@pytest.mark.parametrize(
    ("incomplete", "treatment", "words"),
    [
        ("available", "left out", "each competition counts with its graded runs"),
        ("exclude", "seed excluded", "a seed is left out"),
        ("fail", "counted as failure", "counted as failures"),
    ],
)
def test_the_result_states_what_was_incomplete_and_how_it_was_treated(
    incomplete: Incomplete, treatment: str, words: str
) -> None:
    found = aggregate(INCOMPLETE, incomplete=incomplete)
    low = found.gaps[found.gaps["split"] == "low"].iloc[0]
    assert (low["seed"], low["competition_id"], low["reason"], low["treatment"]) == (3, "b", "missing", treatment)
    assert found.incomplete == incomplete
    assert found.statement().startswith(f"1 run without a grade: {words}")


def test_complete_seeds_are_stated_too() -> None:
    assert aggregate(INCOMPLETE[INCOMPLETE["seed"] < 3]).statement() == "Every run is graded."


def test_a_failure_of_the_grader_is_never_booked_as_the_agents() -> None:
    grades = pd.DataFrame([grade("a", 1, "gold"), grade("a", 2, outcome="failed")])
    found = aggregate(grades)
    assert (rate(found, "low")["mean"], rate(found, "low")["seeds"]) == (1, 1)
    assert found.gaps["reason"].unique().tolist() == ["failed"]
    assert "1 run without a grade (1 failed grading: look into it)" in found.statement()


def test_expected_competitions_that_nobody_graded_are_gaps() -> None:
    expected = {"a": "low", "b": "low"}
    grades = pd.DataFrame([grade("a", 1, "gold"), grade("z", 1, "gold")])
    row = rate(aggregate(grades, expected=expected), "low")
    assert (row["mean"], row["competitions"], row["missing"], row["if_failed"]) == (1, 1, 1, 0.5)
    assert rate(aggregate(grades, expected=expected, incomplete="exclude"), "low")["seeds"] == 0
    padded = rate(aggregate(grades, expected=expected, incomplete="fail"), "low")
    assert (padded["mean"], padded["competitions"]) == (0.5, 2)  # z was not asked for


def test_a_seed_whose_runs_were_never_graded_is_known_from_the_runs() -> None:
    grades = pd.DataFrame([grade("a", 1, "gold")])
    runs = pd.DataFrame([grade("a", 1), grade("a", 2)])[
        ["run_group", "run_id", "competition_id", "seed", "agent", "edition"]
    ]
    found = aggregate(grades, runs, incomplete="fail")
    assert (rate(found, "low")["mean"], rate(found, "low")["seeds"]) == (0.5, 2)


RAN = ["run_group", "run_id", "competition_id", "seed", "agent", "edition"]


@pytest.mark.parametrize("incomplete", ["available", "exclude", "fail"])
def test_a_competition_of_which_no_run_was_graded_counts_in_its_split(incomplete: Incomplete) -> None:
    grades = pd.DataFrame([grade("a", seed, "gold") for seed in (1, 2)])
    runs = pd.DataFrame([grade(c, seed) for c in "ab" for seed in (1, 2)])[RAN]
    facts = {"b": {"complexity": "low", "category": "Image"}}
    found = aggregate(grades, runs, facts=facts, incomplete=incomplete)
    row = rate(found, "low")
    counted = {"available": (1, 2), "exclude": (0, 0), "fail": (2, 2)}
    assert (row["competitions"], row["seeds"]) == counted[incomplete]
    assert (row["runs"], row["missing"], row["if_failed"]) == (2, 2, 0.5)
    if incomplete == "fail":
        assert row["mean"] == 0.5
    low = found.gaps[found.gaps["split"] == "low"]
    assert list(zip(low["competition_id"], low["seed"], strict=True)) == [("b", 1), ("b", 2)]
    assert "2 runs without a grade" in found.statement()
    categories = aggregate(grades, runs, facts=facts, incomplete=incomplete, by="category")
    assert rate(categories, "Image")["missing"] == 2
    assert "unknown" in set(aggregate(grades, runs).rates["split"]), "without facts it still does not vanish"


def test_a_run_that_was_not_graded_as_another_edition_is_a_gap_there() -> None:
    runs = pd.DataFrame([grade(c, 1) for c in "ab"])[RAN]
    v1 = [grade(c, 1, "gold") for c in "ab"]
    grades = pd.DataFrame([*v1, {**v1[0], "edition": "v2"}])
    found = aggregate(grades, runs)
    assert rate(found, "low", edition="v1")["seeds"] == 1
    assert rate(found, "low", edition="v2")["missing"] == 1
    assert set(found.gaps["edition"]) == {"v2"}


def test_expected_competitions_by_category() -> None:
    facts = {"b": {"complexity": "low", "category": "Image"}}
    grades = pd.DataFrame([grade("a", 1, "gold"), grade("z", 1, "gold", category="Audio")])
    found = aggregate(grades, expected={"a": "low", "b": "low"}, facts=facts, by="category", incomplete="fail")
    assert set(found.rates["split"]) == {"Image", "Tabular", "all"}


def test_series_stand_side_by_side_each_with_its_own_seeds() -> None:
    grades = pd.DataFrame(
        [
            *(grade("a", seed, "gold", agent="good") for seed in (1, 2)),
            *(grade("a", seed, agent="bad") for seed in (1, 2, 3)),
            grade("a", 1, "gold", agent="bad", group="later"),
        ]
    )
    found = aggregate(grades)
    assert rate(found, "low", agent="good")["mean"] == 1
    assert (
        rate(found, "low", agent="bad", run_group="g")["mean"],
        rate(found, "low", agent="bad", run_group="g")["seeds"],
    ) == (0, 3)
    assert rate(found, "low", run_group="later")["mean"] == 1
    assert found.wide().shape == (3, 4)  # low and all, mean and sem


def test_the_newest_grade_of_a_run_counts() -> None:
    early, late = "2026-01-01T09:00:00+02:00", "2026-01-01T08:30:00+00:00"  # the second is later
    grades = pd.DataFrame([grade("a", 1, "gold", created_at=late), grade("a", 1, None, created_at=early)])
    assert latest_grades(grades)["gold_medal"].tolist() == [True]
    assert rate(aggregate(grades), "low")["mean"] == 1


def test_rates_by_category() -> None:
    grades = pd.DataFrame(
        [grade("a", 1, "gold"), grade("b", 1, split="high", category="Video"), grade("c", 1, split="demo")]
    )
    found = aggregate(grades, by="category")
    assert rate(found, "Tabular")["mean"] == 0.5
    assert rate(found, "Video")["mean"] == 0
    assert rate(found, "all")["competitions"] == 3


def test_a_table_read_back_from_parquet_gives_the_same(tmp_path: Path) -> None:
    INCOMPLETE.to_parquet(tmp_path / "grades.parquet")
    again = aggregate(pd.read_parquet(tmp_path / "grades.parquet"))
    pd.testing.assert_frame_equal(again.rates, aggregate(INCOMPLETE).rates)


def test_no_grades_give_empty_tables_with_all_columns() -> None:
    found = aggregate(EMPTY.assign(complexity=[], category=[], created_at=[]))
    assert found.rates.empty
    assert {"split", "rate", "mean", "sem", "seeds"} <= set(found.rates.columns)


def test_a_table_without_the_needed_columns_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no column outcome, any_medal"):
        aggregate(INCOMPLETE.drop(columns=["outcome", "any_medal"]))


def test_an_unknown_treatment_is_refused() -> None:
    with pytest.raises(ValueError, match="one of available, exclude, fail"):
        aggregate(INCOMPLETE, incomplete=cast("Any", "ignore"))
