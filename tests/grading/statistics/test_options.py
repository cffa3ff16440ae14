"""`--split`, `--incomplete` and `--interval` of a report reach every figure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from grading.statistics.aggregate import rates_of
from grading.statistics.attempts import best_of, competition_table, pass_at
from grading.statistics.counting import Counting, cells_of
from grading.statistics.differences import differences
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
    for treatment, attempts, beaten in (("exclude", 1, 75), ("fail", 3, 25)):
        counting = Counting(incomplete=cast("Any", treatment))
        row = rate(competition_table(grades, points, counting), competition_id="a")
        assert (row["attempts"], row["human_percentile"]) == (attempts, pytest.approx(beaten))
        assert rate(best_of(grades, counting=counting), competition_id="a", k=1)["attempts"] == attempts
    planned = {"g": [("c", 0)]}
    row = rate(competition_table(grades, points, Counting(incomplete="fail", planned=planned)), competition_id="c")
    assert (row["attempts"], row["medals"]) == (3, 0)


def test_the_kind_of_the_interval_reaches_rates_curves_and_differences() -> None:
    grades = COURSES.GRADES
    ends = {}
    for kind in ("t", "bootstrap"):
        counting = Counting(interval=cast("Any", kind))
        curve = over_time(grades, COURSES.SNAPSHOTS, counting=counting)
        last = curve[(curve["split"] == "all") & (curve["rate"] == "any_medal")].iloc[-1]
        headline = rate(rates_of(grades, None, counting).rates, split="all", rate="any_medal")
        assert (last["ci_low"], last["ci_high"]) == (headline["ci_low"], headline["ci_high"])
        other = grades.assign(run_group="h", any_medal=[False, True, False, False])
        cells = [each for table in (grades, other) for each in cells_of(table) if each.split == "all"]
        (found,) = differences(cells, interval=cast("Any", kind))
        ends[kind] = (last["ci_low"], found.interval.low)
    assert ends["t"][0] < ends["bootstrap"][0]
    assert ends["t"][1] < ends["bootstrap"][1]
