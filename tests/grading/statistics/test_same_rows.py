"""Groups with and without feedback are compared on the same test rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from grading.statistics.compare import compare
from tests.grading.statistics.rows import grade

LIMITS: dict[str, Any] = {
    "gold_threshold": 4.0,
    "silver_threshold": 3.0,
    "bronze_threshold": 2.0,
    "median_threshold": 1.0,
}


def graded(competition: str, medal: str | None, score: float, **more: Any) -> dict[str, Any]:
    return grade(competition, 0, medal, **LIMITS, score=score, is_lower_better=False, **more)


def test_feedback_on_one_side_is_scored_on_all_rows_with_their_medals() -> None:
    plain = pd.DataFrame([graded("c", "bronze", 2.5), graded("undivided", "gold", 5.0)])
    rows = [
        graded("c", "gold", 4.5, feedback=0.3, score_with_public_rows=2.5),
        graded("undivided", "gold", 5.0, feedback=None, score_with_public_rows=None),
    ]
    found = compare(plain, pd.DataFrame(rows))
    assert found.on_all_rows == ["c"]
    assert set(found.competitions["change"]) == {"same"}
    assert found.competitions[["score_a", "score_b"]].to_numpy().tolist() == [[2.5, 2.5], [5.0, 5.0]]


def test_on_the_same_share_the_private_score_counts() -> None:
    a, b = (
        pd.DataFrame([graded("c", "gold", score, feedback=0.3, score_with_public_rows=2.5)]) for score in (4.5, 4.0)
    )
    found = compare(a, b)
    assert (found.on_all_rows, found.competitions["score_difference"].tolist()) == ([], [-0.5])


def test_without_a_score_on_all_rows_a_grade_is_left_out() -> None:
    found = compare(pd.DataFrame([graded("c", None, 2.5)]), pd.DataFrame([graded("c", None, 4.5, feedback=0.3)]))
    assert (len(found.competitions), found.only_a) == (0, ["c"])
