"""`--split` and `--incomplete` of a report reach every figure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from grading.statistics.attempts import best_of, competition_table, pass_at
from grading.statistics.counting import Counting
from grading.statistics.over_time import over_time
from tests.grading.statistics import test_attempts
from tests.grading.statistics.test_attempts import grades_of, rate

COURSES = test_attempts.TestOverTime


def test_the_options_of_the_report_reach_every_figure() -> None:
    counting = Counting(expected={"b": "low"}, incomplete="fail")
    grades = grades_of()
    for table in (best_of(grades, counting=counting), competition_table(grades, counting=counting)):
        assert set(table["competition_id"]) == {"b"}
    assert set(pass_at(grades, counting=counting)["competitions"]) == {1}
    assert set(over_time(COURSES.GRADES, COURSES.SNAPSHOTS, counting=counting)["competitions"]) == {1}


def test_ungraded_attempts_are_left_out_or_count_as_failures() -> None:
    points = {"a": [1 - n / 20 for n in range(21)]}
    grades = grades_of({"a": (0.75, 0.5), "b": (0.75, 0.5, 0.6)})
    grades.loc[grades["run_id"] == "g-a-1", "outcome"] = "failed"
    for treatment, attempts, beaten in (("available", 1, 75), ("exclude", 1, 75), ("fail", 3, 25)):
        counting = Counting(incomplete=cast("Any", treatment))
        row = rate(competition_table(grades, points, counting), competition_id="a")
        assert (row["attempts"], row["human_percentile"]) == (attempts, pytest.approx(beaten))
        assert rate(best_of(grades, counting=counting), competition_id="a", k=1)["attempts"] == attempts
    planned = {"g": [("c", 0)]}
    row = rate(competition_table(grades, points, Counting(incomplete="fail", planned=planned)), competition_id="c")
    assert (row["attempts"], row["medals"]) == (3, 0)
