"""What public scores told, what files are worth, and what the final choice cost: worked examples."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from grading.statistics.public_scores import by_file, by_number, by_run, shake_up, totals
from tests.grading.page.pages import graded

POINTS = {"cactus": [1 - n / 20 for n in range(21)], "diabetes": [n / 20 for n in range(21)]}
"""A score of 0.7 beats 70 % of the teams of cactus, whose higher scores are better, and 30 % of those of diabetes."""


def file(competition: str, number: int, public: float, private: float | None, **more: Any) -> dict[str, Any]:
    """A row of the table of snapshots."""
    return {
        "run_group": "g",
        "run_id": f"g-baseline-{competition}-1",
        "competition_id": competition,
        "seed": 1,
        "edition": "v1",
        "submission": number,
        "public_score": public,
        "told": public,
        "score": private,
        "valid_submission": private is not None,
        "any_medal": False,
        "chosen": False,
        **more,
    }


def grade(competition: str, score: float | None, public: float | None, **more: Any) -> dict[str, Any]:
    outcome: Any = "invalid" if score is None else "valid"
    return {**graded(competition, 1, score, outcome=outcome), "feedback": 0.3, "public_score": public, **more}


FILES = pd.DataFrame(
    [
        file("cactus", 1, 0.5, 0.6),
        file("cactus", 2, 0.8, 0.7, chosen=True),
        file("cactus", 3, 0.9, 0.65, chosen=True),
        file("cactus", 4, 0.85, 0.75, any_medal=True),
    ]
)
GRADES = pd.DataFrame([grade("cactus", 0.7, 0.8, any_medal=False)])


def test_the_file_that_counts_is_the_better_private_one_of_the_choice() -> None:
    found = by_file(GRADES, FILES, POINTS)
    assert found.loc[found["counted"], "submission"].tolist() == [2]
    assert found["gap"].tolist() == pytest.approx([-0.1, 0.1, 0.25, 0.1])
    assert found["public"].tolist() == pytest.approx([50, 80, 90, 85])
    assert found["private"].tolist() == pytest.approx([60, 70, 65, 75])


def test_gap_cost_and_shake_up_of_a_run() -> None:
    """Ranks of the files by public score 4, 3, 1, 2, by private score 4, 2, 3, 1."""
    run = by_run(GRADES, by_file(GRADES, FILES, POINTS), POINTS).iloc[0]
    assert (run["gap"], run["cost"]) == pytest.approx((0.1, 0.05))
    assert (run["percentile_gap"], run["percentile_cost"]) == pytest.approx((10, 5))
    assert run["shake_up"] == pytest.approx((0 + 1 + 2 + 1) / 4 / 4)
    assert run["medal_lost"]
    row = totals(GRADES, by_run(GRADES, by_file(GRADES, FILES, POINTS), POINTS)).iloc[0]
    assert (row["runs"], row["with_feedback"], row["files"], row["medals_lost"]) == (1, 1, 4, 1)


def test_gaps_and_costs_are_positive_for_metrics_of_which_lower_is_better_too() -> None:
    files = pd.DataFrame([file("diabetes", 1, 0.2, 0.3, chosen=True), file("diabetes", 2, 0.25, 0.28)])
    grades = pd.DataFrame([grade("diabetes", 0.3, 0.2)])
    run = by_run(grades, by_file(grades, files, POINTS), POINTS).iloc[0]
    assert (run["gap"], run["cost"]) == pytest.approx((0.1, 0.02))
    assert (run["percentile_gap"], run["percentile_cost"]) == pytest.approx((10, 2))


def test_a_better_file_without_a_public_score_costs_nothing() -> None:
    grades = pd.DataFrame([grade("cactus", 0.9, 0.95)])
    run = by_run(grades, by_file(grades, FILES, POINTS), POINTS).iloc[0]
    assert run["cost"] == 0


def test_a_choice_without_a_private_score_beats_nobody() -> None:
    files = pd.DataFrame([file("cactus", 1, 0.5, 0.6), file("cactus", 2, 0.9, None, chosen=True)])
    grades = pd.DataFrame([grade("cactus", None, None)])
    found = by_file(grades, files, POINTS)
    assert not found["counted"].any()
    assert found["private"].tolist() == pytest.approx([60, 0])
    run = by_run(grades, found, POINTS).iloc[0]
    assert math.isnan(run["cost"])
    assert math.isnan(run["gap"])
    assert run["percentile_cost"] == pytest.approx(60)
    assert math.isnan(run["shake_up"]), "one file has both scores"


def test_the_best_public_file_so_far_is_followed() -> None:
    """Files 1, 2, 3 are the best ones so far; file 4 is not."""
    found = by_number(by_file(GRADES, FILES, POINTS), [1, 2, 4])
    assert found["public"].tolist() == pytest.approx([50, 80, 90])
    assert found["private"].tolist() == pytest.approx([60, 70, 65])


def test_nothing_is_said_without_feedback_or_a_leaderboard() -> None:
    without = GRADES.assign(feedback=None)
    assert by_file(without, FILES, POINTS).empty
    assert by_file(GRADES.drop(columns="feedback"), FILES, POINTS).empty
    assert by_run(GRADES, by_file(GRADES, FILES[:0], POINTS), POINTS).empty
    found = by_file(GRADES, FILES, {})
    assert found["private"].isna().all()
    assert by_number(found, [1]).empty
    assert by_run(GRADES, found, {}).iloc[0]["cost"] == pytest.approx(0.05), "in units of the metric"


def test_equal_ranks_are_no_shake_up() -> None:
    scores = pd.Series([0.1, 0.5, 0.5])
    assert shake_up(scores, scores * 2) == 0
    assert math.isnan(shake_up(scores[:1], scores[:1]))
