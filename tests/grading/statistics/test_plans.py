"""Groups of which not all planned runs were made."""

from types import MappingProxyType

import pandas as pd
import pytest

from grading.statistics.aggregate import rates_of
from grading.statistics.counting import Counting, Facts, Planned
from tests.grading.statistics.rows import grade, rate


class TestPlans:
    """A group that planned two competitions and three seeds, of which one competition and two seeds were run."""

    GRADES = pd.DataFrame([grade("a", seed, "gold") for seed in (0, 1)])
    FACTS: Facts = MappingProxyType({"b": {"complexity": "high"}})
    PLANNED: Planned = MappingProxyType({"g": [(c, s) for c in "ab" for s in range(3)]})

    def test_it_is_not_called_complete(self) -> None:
        found = rates_of(self.GRADES, None, Counting(facts=self.FACTS, planned=self.PLANNED))
        assert "complete" in found.statement()
        assert "Every run is graded" not in found.statement()
        assert "4 planned runs of competitions or seeds that were never run do not count" in found.statement()
        assert set(found.gaps["treatment"]) == {"not counted"}
        row = rate(found, "low")
        assert (row["mean"], row["seeds"]) == (1.0, 2), "the figures are of what was run"

    def test_a_complete_plan_is_complete(self) -> None:
        plan = {"g": [("a", 0), ("a", 1)], "another": [("z", 0)]}
        assert rates_of(self.GRADES, None, Counting(planned=plan)).statement() == "Every run is graded."

    def test_padding_counts_what_was_planned_as_failures(self) -> None:
        found = rates_of(self.GRADES, None, Counting(facts=self.FACTS, incomplete="fail", planned=self.PLANNED))
        row = rate(found, "all")
        assert (row["mean"], row["seeds"], row["competitions"]) == (pytest.approx(1 / 3), 3, 2)
        assert "4 runs without a grade: counted as failures" in found.statement()

    def test_a_missing_run_between_others_is_a_gap_as_before(self) -> None:
        grades = pd.DataFrame([grade("a", 0), grade("a", 1), grade("b", 0)])
        plan = {"g": [(c, s) for c in "ab" for s in range(2)]}
        found = rates_of(grades, None, Counting(planned=plan))
        assert found.statement().startswith("1 run without a grade: each competition counts")
