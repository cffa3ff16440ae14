"""Which agents can be told apart, how the headline depends on decisions, and the conditions beside it."""

from __future__ import annotations

import itertools
import math
import string
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.conditions import deviations, report_conditions, switched_on, unlike, unlike_grades, unlike_values
from grading.statistics.aggregate import rates_of
from grading.statistics.compare import compare
from grading.statistics.counting import Counting, cells_of
from grading.statistics.differences import UNTESTED, Difference, Paired, differences, letters, paired
from grading.statistics.seeds import holm, smallest_difference
from grading.statistics.sensitivity import sensitivity
from tests.grading.statistics.rows import grade


def agent(medals: list[int], runs: int = 1, competitions: int = 20) -> dict[str, list[float]]:
    """The outcomes of an agent that earns a medal in every run of some competitions, and in no other run."""
    return {f"c{n:02}": [float(n in medals)] * runs for n in range(competitions)}


def pair_of(better: int, worse: int, corrected: float) -> Difference:
    """A difference of two agents with this corrected p-value."""
    test = replace(UNTESTED, p_value=corrected / 3, corrected=corrected)
    return Difference(better, worse, Paired(0.2, 0.0, 0.2, 20, UNTESTED, test))


class TestDifferences:
    def test_agents_that_share_a_letter_cannot_be_told_apart(self) -> None:
        found = differences([agent([*range(18)]), agent([*range(3)]), agent([])])
        assert [(each.better, each.worse, each.told_apart) for each in found] == [
            (0, 1, True),
            (0, 2, True),
            (1, 2, False),
        ]
        assert letters(3, found) == ["a", "b", "b"]

    def test_it_is_the_better_one_minus_the_worse_one(self) -> None:
        (found,) = differences([agent([]), agent([*range(5)])])
        assert (found.better, found.worse, found.paired.difference) == (1, 0, 0.25)

    def test_all_medals_and_none_are_told_apart(self) -> None:
        (found,) = differences([agent([]), agent([*range(20)])])
        assert found.told_apart
        assert math.isnan(found.paired.like_these.smallest), "equal differences do not say what could be found"

    def test_two_that_are_equal_everywhere_are_not_told_apart(self) -> None:
        found = differences([agent([]), agent([])])
        assert found[0].paired.like_these.p_value == 1
        assert letters(2, found) == ["a", "a"]

    def test_thirty_agents_that_are_all_alike_are_one_group(self) -> None:
        """There are 2^30 subsets of them."""
        pairs = [*itertools.combinations(range(30), 2)]
        apart = letters(30, [pair_of(a, b, 0.001) for a, b in pairs])
        assert apart == [*map(str, string.ascii_lowercase), "aa", "bb", "cc", "dd"]
        assert letters(30, [pair_of(a, b, 1.0) for a, b in pairs]) == ["a"] * 30

    def test_each_pair_is_a_paired_test_corrected_for_all(self) -> None:
        a, b, c = agent([]), agent([*range(4)]), agent([*range(18)])
        first = differences([a, b])[0].paired.like_these
        before, after = np.zeros(20), np.array([1.0] * 4 + [0.0] * 16)
        assert first.p_value == pytest.approx(stats.ttest_rel(after, before).pvalue)
        assert first.corrected == first.p_value, "one comparison needs no correction"
        for question in ("these", "like_these"):
            found = [getattr(each.paired, question) for each in differences([c, b, a])]
            assert [each.corrected for each in found] == pytest.approx(
                holm([each.p_value for each in found]), nan_ok=True
            )
        assert first.smallest == pytest.approx(first.sem * (stats.t.ppf(0.975, 19) + stats.t.ppf(0.8, 19)))
        ends = stats.ttest_rel(after, before).confidence_interval()
        assert (first.interval.low, first.interval.high) == pytest.approx((ends.low, ends.high))

    def test_each_pair_has_all_competitions_that_both_have(self) -> None:
        """The third agent ran six of them, which must not take the others from the first two."""
        found = differences([agent([*range(18)]), agent([*range(3)]), agent([0], competitions=6)])
        assert [each.paired.competitions for each in found] == [20, 6, 6]
        assert found[0].told_apart

    def test_other_runs_of_these_competitions_are_another_question(self) -> None:
        """Six runs of three competitions, all of one agent and none of the other earned a medal."""
        (found,) = differences([agent([0, 1, 2], runs=2, competitions=3), agent([], runs=2, competitions=3)])
        assert found.paired.these.p_value < 0.05
        assert math.isnan(found.paired.like_these.p_value), "three competitions tell nothing about others"
        assert found.paired.these.interval.high == 1
        assert letters(2, [found]) == ["", ""]

    def test_single_runs_do_not_say_what_other_runs_would_give(self) -> None:
        (found,) = differences([agent([*range(18)]), agent([])])
        assert math.isnan(found.paired.these.p_value)

    def test_the_test_over_runs_is_near_that_of_permuted_runs(self) -> None:
        """If the agents are equal, every assignment of the runs of a competition to them is as likely."""
        generator = np.random.default_rng(2)
        chances = generator.beta(0.4, 0.6, 22)
        a, b = (generator.binomial(1, np.minimum(1, chances + shift), (4, 22)).T.astype(float) for shift in (0, 0.15))
        first, second = ({str(n): runs.tolist() for n, runs in enumerate(side)} for side in (a, b))
        test = paired(first, second).these
        observed, together = abs((b - a).mean()), np.concatenate([a, b], axis=1)
        # assert_equal: one NaN equals another one, which Python 3.13 no longer says of dataclasses.
        one, other = -paired(first, second), paired(second, first)
        np.testing.assert_equal(asdict(one), asdict(other), "the order says only which is subtracted")
        shuffled = generator.permuted(np.broadcast_to(together, (20_000, *together.shape)), axis=2)
        permuted = np.abs((shuffled[:, :, 4:] - shuffled[:, :, :4]).mean(axis=(1, 2)))
        assert test.p_value == pytest.approx(np.mean(permuted >= observed - 1e-12), abs=0.02)

    def test_compare_and_the_page_give_the_same_figures(self) -> None:
        """One run of each agent is ungraded, which neither of them may count otherwise than the other one."""
        generator = np.random.default_rng(4)
        medals = {name: generator.random((12, 3)) < share for name, share in (("x", 0.3), ("y", 0.6))}
        tables = {
            name: pd.DataFrame(
                [
                    grade(
                        f"c{n:02}",
                        seed,
                        "gold" if won[n, seed] else None,
                        agent=name,
                        group=name,
                        outcome="failed" if (n, seed) == (3, 1) else "valid",
                        score=0.5,
                        is_lower_better=False,
                    )
                    for n, seed in np.ndindex(12, 3)
                ]
            )
            for name, won in medals.items()
        }
        cells = [next(cells_of(table)) for table in tables.values()]
        [of_page] = differences([each.outcomes("any_medal") for each in cells])
        table = compare(tables["x"], tables["y"]).differences
        rows = table[(table["split"] == "low") & (table["rate"] == "any_medal")].to_dict("records")
        for row, test in zip(rows, (of_page.paired.these, of_page.paired.like_these), strict=True):
            assert (row["difference"], row["p_value"]) == pytest.approx((of_page.paired.difference, test.p_value))
            assert (row["ci_low"], row["ci_high"]) == pytest.approx((test.interval.low, test.interval.high))
        rates = [rates_of(each).rates for each in tables.values()]
        shown = [row.query("split == 'low' and rate == 'any_medal'")["mean"].item() for row in rates]
        assert [rows[0]["mean_a"], rows[0]["mean_b"]] == pytest.approx(shown)

    def test_overlapping_groups(self) -> None:
        """The middle one cannot be told from either end, and the ends can be told apart."""
        pairs = [pair_of(0, 2, 0.003), pair_of(0, 1, 0.12), pair_of(1, 2, 0.12)]
        assert letters(3, pairs) == ["a", "a b", "b"]

    def test_nothing_in_common_is_no_difference(self) -> None:
        found = differences([agent([]), {"x": [1.0]}])
        assert found == []
        assert letters(2, found) == ["", ""]
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
        assert self.rates() == {
            "available": (1, 2),
            "excluded": (1, 1),
            "padded": (0.75, 2),
            "no leaks": (1, 1),
            "no findings": (0.5, 2),
        }

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
        assert deviations(self.PUBLISHED, 3, "v1") == []

    def test_a_limit_of_440g_is_as_published(self) -> None:
        """Docker counts in powers of two, vendors of machines in powers of ten."""
        assert deviations(self.PUBLISHED.assign(memory_bytes=440 << 30), 3, "v1") == []
        assert deviations(self.PUBLISHED.assign(memory_bytes=400 * 10**9), 3, "v1") != []

    def test_every_other_one_is_named(self) -> None:
        other = self.PUBLISHED.assign(time_limit_seconds=360000.0, cpus=8, memory_bytes=64 << 30, gpus=0, hardware="x")
        found = deviations(other, 1, "v2")
        for part in ("100 h", "processors: 8", "memory: 64 GiB", "GPUs: 0", "seeds: 1", "edition: v2"):
            assert any(part in each for each in found), part

    def test_what_was_not_recorded_is_a_deviation(self) -> None:
        assert sum("not recorded" in each for each in deviations(pd.DataFrame(), 3, "v1")) == 4

    @pytest.mark.parametrize("board", ["NVIDIA A100-SXM4-40GB", "NVIDIA A10G", "NVIDIA H100"])
    def test_only_an_a10_is_an_a10(self, board: str) -> None:
        other = self.PUBLISHED.assign(hardware=f"Linux, 36 cores, {board}")
        assert deviations(other, 3, "v1") == ["GPUs: 1, no A10 recorded (published: one A10)"]
        mixed = deviations(pd.concat([self.PUBLISHED, other]), 3, "v1")
        assert mixed == ["GPUs: 1, not all of them an A10 (published: one A10)"]

    def test_what_one_of_many_runs_lacks_is_a_deviation(self) -> None:
        runs = pd.concat([self.PUBLISHED, self.PUBLISHED.assign(time_limit_seconds=float("nan"))])
        assert deviations(runs, 3, "v1") == ["time limit: 24 h, not recorded (published: 24 h)"]

    def test_unlike_groups_are_told(self) -> None:
        assert unlike([self.PUBLISHED, self.PUBLISHED]) == []
        assert unlike([self.PUBLISHED, self.PUBLISHED.assign(cpus=8)]) == ["processors"]
        assert unlike([self.PUBLISHED, pd.concat([self.PUBLISHED, self.PUBLISHED.assign(cpus=None)])]) == ["processors"]
        for switch, words in (("obfuscated", "obfuscated descriptions"), ("scorer", "scorer")):
            on, off, null = (self.PUBLISHED.assign(**{switch: value}) for value in (True, False, None))
            assert unlike([null, off]) == unlike([self.PUBLISHED, off]) == []
            assert unlike([on, self.PUBLISHED]) == unlike([pd.concat([on, null]), null]) == [words]

    def test_a_share_of_feedback_is_a_condition(self) -> None:
        off, on = (self.PUBLISHED.assign(feedback=share, feedback_calls_per_day=5.0) for share in (None, 0.3))
        off = off.assign(feedback_calls_per_day=None)
        groups = {"a": on, "b": off}
        assert unlike_values(groups) == {"feedback": {"a": "30 %", "b": "no"}}
        more = on.assign(feedback_calls_per_day=50.0)
        assert unlike_values({"a": on, "b": more}) == {"public scores a day": {"a": "5", "b": "50"}}
        partly = self.PUBLISHED.loc[[0, 0]].assign(feedback=[0.3, math.nan], feedback_calls_per_day=[5.0, math.nan])
        assert unlike_values({"a": partly, "b": partly[::-1]}) == {}, "not all can be divided"
        assert switched_on({"a": partly})[0].startswith("with feedback in 1 of 2 runs: agents were told scores on 30 %")
        words = "agents were told scores on 30 % of the test rows, 5 a day, and are graded on the rest"
        assert deviations(on, 3, "v1") == [f"with feedback: {words}"]
        assert deviations(off, 3, "v1") == []
        assert switched_on(groups) == [f"with feedback (a): {words}"]
        assert "30 % or 50 % of the test rows" in switched_on({"a": on, "b": on.assign(feedback=0.5)})[0]

    def test_runs_without_the_feedback_that_was_requested_are_listed_with_the_reason(self) -> None:
        runs = self.PUBLISHED.loc[[0, 0]].assign(run_group="g", backend="process", competition_id=["a", "b"])
        runs["feedback_missing"] = [None, "3 units are too few"]
        listed = report_conditions(runs, pd.DataFrame(), "g")["Without feedback"]
        assert listed == "1 of 2 runs: b (3 units are too few)"

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
