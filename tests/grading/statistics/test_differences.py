"""Which agents can be told apart, how the headline depends on decisions, and the conditions beside it."""

from __future__ import annotations

import itertools
import math
import string
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.conditions import deviations, unlike, unlike_grades
from grading.statistics.counting import Cells, Counting, cells_of
from grading.statistics.differences import Difference, differences, letters
from grading.statistics.seeds import Interval, holm, smallest_difference
from grading.statistics.sensitivity import sensitivity
from tests.grading.statistics.rows import grade


def series(agent: str, medals: list[int]) -> Cells:
    """A series with one seed: the competitions in which it earned a medal."""
    rows = [grade(f"c{n:02}", 0, "gold" if n in medals else None, agent=agent) for n in range(20)]
    (low, _) = cells_of(pd.DataFrame(rows))
    return low


class TestDifferences:
    def test_agents_that_share_a_letter_cannot_be_told_apart(self) -> None:
        agents = [series("a", []), series("b", [*range(3)]), series("c", [*range(18)])]
        found = differences(agents)
        assert [each.told_apart for each in found] == [False, True, True]
        assert letters(3, found) == ["a", "a", "b"]

    def test_all_medals_and_none_are_told_apart(self) -> None:
        (found,) = differences([series("a", []), series("b", [*range(20)])])
        assert found.told_apart
        assert math.isnan(found.smallest), "equal differences do not say what could be found"

    def test_thirty_agents_that_are_all_alike_are_one_group(self) -> None:
        """There are 2^30 subsets of them."""
        assert letters(30, []) == [*map(str, string.ascii_lowercase), "aa", "bb", "cc", "dd"]
        pairs = itertools.combinations(range(30), 2)
        alike = [Difference(a, b, 0.0, 0.1, Interval(0, 0), 1.0, 1.0, 0.3, 20) for a, b in pairs]
        assert letters(30, alike) == ["a"] * 30

    def test_each_pair_is_a_paired_test_corrected_for_all(self) -> None:
        a, b, c = series("a", []), series("b", [*range(4)]), series("c", [*range(18)])
        first = differences([a, b])[0]
        before, after = np.zeros(20), np.array([1.0] * 4 + [0.0] * 16)
        assert first.p_value == pytest.approx(stats.ttest_rel(after, before).pvalue)
        assert first.corrected == first.p_value, "one comparison needs no correction"
        found = differences([a, b, c])
        assert [each.corrected for each in found] == holm([each.p_value for each in found])
        assert any(each.corrected > each.p_value for each in found)
        assert first.smallest == pytest.approx(first.sem * (stats.t.ppf(0.975, 19) + stats.t.ppf(0.8, 19)))

    def test_overlapping_groups(self) -> None:
        """The middle one cannot be told from either end, and the ends can be told apart."""
        far = Difference(0, 2, 0.5, 0.1, Interval(0.3, 0.7), 0.001, 0.003, 0.3, 20)
        near = [Difference(a, b, 0.2, 0.1, Interval(0, 0.4), 0.06, 0.12, 0.3, 20) for a, b in ((0, 1), (1, 2))]
        assert letters(3, [far, *near]) == ["a", "a b", "b"]

    def test_nothing_in_common_is_no_difference(self) -> None:
        rows = pd.DataFrame([grade("x", 0, "gold", agent="x")])
        (other, _) = cells_of(rows)
        (found,) = differences([series("a", []), other])
        assert math.isnan(found.corrected)
        assert not found.told_apart
        assert math.isnan(smallest_difference(math.nan, 3))


class TestSensitivity:
    GRADES = pd.DataFrame(
        [
            grade("leaky", 0, "gold"),
            grade("leaky", 1, "gold"),
            grade("clean", 0, "gold"),
            grade("clean", 1, outcome="failed"),
        ]
    )

    def rates(self, **more: Any) -> dict[str, tuple[float, int]]:
        table = sensitivity(self.GRADES, None, Counting(**more), {"v1": ["leaky"]}, {("g", "g-baseline-clean-0")})
        low = table[table["split"] == "low"]
        return {row["variant"]: (row["mean"], row["seeds"]) for row in low.to_dict("records")}

    def test_each_row_decides_one_thing_differently(self) -> None:
        assert self.rates() == {"excluded": (1, 1), "padded": (0.75, 2), "no leaks": (1, 1), "no findings": (0.5, 1)}

    def test_padding_applies_to_the_other_rows_as_chosen(self) -> None:
        assert self.rates(incomplete="fail")["no leaks"] == (0.5, 2)

    def test_without_leaks_competitions_that_are_expected_stay_expected(self) -> None:
        expected = {"leaky": "low", "clean": "low", "never-run": "low"}
        found = self.rates(expected=expected, incomplete="fail")
        assert found["no leaks"] == (0.25, 2)


class TestConditions:
    PUBLISHED = pd.DataFrame(
        [
            {"time_limit_seconds": 86400.0, "cpus": 36, "memory_bytes": 440 * 10**9, "gpus": 1}
            | {"hardware": "Linux, 36 cores, NVIDIA A10", "backend": "docker", "network": "gateway"}
        ]
    )

    def test_the_published_ones_are_no_deviation(self) -> None:
        assert deviations(self.PUBLISHED, 3, "v1", "fail") == []

    def test_a_limit_of_440g_is_as_published(self) -> None:
        """Docker counts in powers of two, vendors of machines in powers of ten."""
        assert deviations(self.PUBLISHED.assign(memory_bytes=440 << 30), 3, "v1", "fail") == []
        assert deviations(self.PUBLISHED.assign(memory_bytes=400 * 10**9), 3, "v1", "fail") != []

    def test_every_other_one_is_named(self) -> None:
        other = self.PUBLISHED.assign(time_limit_seconds=360000.0, cpus=8, memory_bytes=64 << 30, gpus=0, hardware="x")
        found = deviations(other, 1, "v2", "exclude")
        for part in ("100 h", "processors: 8", "memory: 69 GB", "GPUs: 0", "seeds: 1", "edition: v2", "padding"):
            assert any(part in each for each in found), part

    def test_what_was_not_recorded_is_a_deviation(self) -> None:
        assert sum("not recorded" in each for each in deviations(pd.DataFrame(), 3, "v1", "fail")) == 4

    @pytest.mark.parametrize("board", ["NVIDIA A100-SXM4-40GB", "NVIDIA A10G", "NVIDIA H100"])
    def test_only_an_a10_is_an_a10(self, board: str) -> None:
        other = self.PUBLISHED.assign(hardware=f"Linux, 36 cores, {board}")
        assert deviations(other, 3, "v1", "fail") == ["GPUs: 1, no A10 recorded (published: one A10)"]
        mixed = deviations(pd.concat([self.PUBLISHED, other]), 3, "v1", "fail")
        assert mixed == ["GPUs: 1, not all of them an A10 (published: one A10)"]

    def test_what_one_of_many_runs_lacks_is_a_deviation(self) -> None:
        runs = pd.concat([self.PUBLISHED, self.PUBLISHED.assign(time_limit_seconds=float("nan"))])
        assert deviations(runs, 3, "v1", "fail") == ["time limit: 24 h, not recorded (published: 24 h)"]

    def test_unlike_groups_are_told(self) -> None:
        assert unlike([self.PUBLISHED, self.PUBLISHED]) == []
        assert unlike([self.PUBLISHED, self.PUBLISHED.assign(cpus=8)]) == ["processors"]
        assert unlike([self.PUBLISHED, pd.concat([self.PUBLISHED, self.PUBLISHED.assign(cpus=None)])]) == ["processors"]
        assert unlike([self.PUBLISHED.assign(obfuscated=None), self.PUBLISHED.assign(obfuscated=False)]) == []

    def test_nothing_is_known_of_imported_results(self) -> None:
        imported = pd.DataFrame()
        assert unlike([imported]) == []
        for others in ([imported], [self.PUBLISHED]):
            assert unlike([imported, *others]) == ["what is not known of imported results"]

    def test_groups_that_were_graded_differently_are_told(self) -> None:
        rows = [{"competition_id": name, "edition": "v1", "edition_version": "v1.0"} for name in "ab"]
        grades = pd.DataFrame(rows).assign(gold_threshold=0.9, silver_threshold=0.8, bronze_threshold=0.7)
        grades = grades.assign(median_threshold=0.5)
        assert unlike_grades([grades, grades]) == unlike_grades([grades, grades[:1].assign(edition_version=None)]) == []
        assert unlike_grades([grades, grades.assign(edition="v2", edition_version="v2.3")]) == ["edition"]
        newer = grades.assign(edition_version="v1.1")
        assert unlike_grades([grades, newer]) == ["version of the edition (v1.0, v1.1)"]
        assert unlike_grades([grades, grades.assign(gold_threshold=[0.9, 0.91])]) == ["medal thresholds"]
