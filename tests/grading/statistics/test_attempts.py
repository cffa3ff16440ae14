"""Statistics over seeds, attempts, time and cost against literal formulas and scipy; two groups against each other."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from grading.medals import Thresholds, above_median, medal_for
from grading.report import GradedSubmission, Outcome, competition_report
from grading.statistics.aggregate import aggregate
from grading.statistics.attempts import best_of, competition_table, pass_at
from grading.statistics.compare import compare
from grading.statistics.counting import Counting
from grading.statistics.over_time import moments, over_time
from grading.statistics.seeds import expected_best, paired_p_value, pass_at_k
from grading.statistics.usage import usage_by_run, usage_by_series

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=100, lower_is_better=False)
# Scores of three seeds; None is an invalid submission. Medals: 3 of 4, 1 of 4, 2 of 4.
SCORES: dict[str, tuple[Any, ...]] = {
    "a": (0.95, 0.6, 0.72),
    "b": (0.75, None, 0.4),
    "c": (0.1, 0.85, 0.3),
    "d": (0.99, 0.2, 0.9),
}
SPLITS = {"a": "low", "b": "low", "c": "medium", "d": "high"}


def grades_of(scores: Any = SCORES, group: str = "g", **more: Any) -> pd.DataFrame:
    rows = []
    for name, seeds in scores.items():
        for seed, score in enumerate(seeds):
            report = competition_report(name, score, HIGHER, submission_path="s", submission_exists=True)
            facts = {"edition": "v1", "complexity": SPLITS.get(name, "low"), "category": "Tabular", **more}
            outcome: Outcome = "invalid" if score is None else "valid"
            who: dict[str, Any] = {
                "run_group": group,
                "run_id": f"{group}-{name}-{seed}",
                "seed": seed,
                "agent": "agent",
            }
            rows.append(GradedSubmission(report, outcome, None, **who, **facts).to_row())
    return pd.DataFrame(rows)


def grade_row(name: str, seed: int, score: float | None) -> dict[str, Any]:
    """A row of tables/grades; without a score there is no submission."""
    report = competition_report(name, score, HIGHER, submission_path="s", submission_exists=score is not None)
    who: dict[str, Any] = {"run_group": "g", "run_id": f"g-{name}-{seed}", "seed": seed, "agent": "agent"}
    outcome: Outcome = "missing" if score is None else "valid"
    facts: dict[str, Any] = {"edition": "v1", "complexity": "low", "category": "Tabular"}
    return GradedSubmission(report, outcome, None, **who, **facts).to_row()


def rate(table: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = [row for _, row in table.iterrows()]
    return row


class TestThreeSeeds:
    def test_mean_and_error_are_those_of_the_formulas_and_of_scipy(self) -> None:
        per_seed = [3 / 4, 1 / 4, 2 / 4]
        row = rate(aggregate(grades_of()).rates, split="all", rate="any_medal")
        assert row["mean"] == pytest.approx(sum(per_seed) / 3)
        assert row["sem"] == pytest.approx(statistics.stdev(per_seed) / math.sqrt(3))
        assert row["sem"] == pytest.approx(stats.sem(per_seed))

    def test_seeds_are_those_of_the_runs_whatever_the_order_of_the_rows(self) -> None:
        grades = grades_of()
        shuffled = grades.sample(frac=1, random_state=3)
        pd.testing.assert_frame_equal(aggregate(grades).rates, aggregate(shuffled).rates)
        dropped = grades[~((grades["competition_id"] == "a") & (grades["seed"] == 0))]
        by_seed = aggregate(dropped, incomplete="exclude").by_seed
        kept = by_seed[(by_seed["split"] == "all") & (by_seed["rate"] == "any_medal") & by_seed["counted"]]
        assert dict(zip(kept["seed"], kept["value"], strict=True)) == {1: 0.25, 2: 0.5}, "seed 0 is out, none moved up"

    def test_by_category(self) -> None:
        rates = aggregate(grades_of(), by="category").rates
        assert rate(rates, split="Tabular", rate="any_medal")["mean"] == 0.5


class TestSmallStatistics:
    @pytest.mark.parametrize("lower", [True, False])
    @pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
    def test_the_expected_best_is_the_mean_over_all_draws(self, k: int, lower: bool) -> None:
        scores, attempts = [0.3, 0.9, 0.5], 5  # two attempts were invalid
        pick = min if lower else max
        draws = itertools.combinations([*scores, None, None], k)
        best = [pick(valid) for draw in draws if (valid := [s for s in draw if s is not None])]
        assert expected_best(scores, attempts, k, lower) == pytest.approx(np.mean(best))

    def test_too_few_attempts_have_no_best(self) -> None:
        assert math.isnan(expected_best([0.5], 1, 2, lower_is_better=False))
        assert math.isnan(expected_best([], 3, 1, lower_is_better=False))
        with pytest.raises(ValueError, match="at most"):
            expected_best([0.1, 0.2], 1, 1, lower_is_better=False)

    def test_the_paired_test_is_that_of_scipy(self) -> None:
        before, after = [0.2, 0.5, 0.6, 0.1], [0.4, 0.5, 0.9, 0.3]
        p = paired_p_value([y - x for x, y in zip(before, after, strict=True)])
        assert p == pytest.approx(stats.ttest_rel(after, before).pvalue)
        assert math.isnan(paired_p_value([0.0, 0.0]))
        assert math.isnan(paired_p_value([0.1]))

    @pytest.mark.parametrize("count", [2, 10])
    def test_equal_differences_are_tested_by_their_signs(self, count: int) -> None:
        """Student's t would be infinite, or undefined as for scipy; how many they are must count."""
        exact = stats.permutation_test(
            (np.full(count, 0.5),), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        )
        assert paired_p_value([0.5] * count) == exact.pvalue == 2.0 ** (1 - count)


class TestAttempts:
    def test_pass_at_k_is_the_mean_over_competitions(self) -> None:
        table = pass_at(grades_of())
        medals = [2, 1, 1, 2]
        for k in (1, 2, 3):
            row = rate(table, split="all", rate="any_medal", k=k)
            assert row["mean"] == pytest.approx(np.mean([pass_at_k(3, c, k) for c in medals]))
            assert row["competitions"] == 4

    def test_each_k_is_over_the_competitions_with_as_many_attempts(self) -> None:
        """One of ten competitions lacks a run: all others count for every k, and it counts with the two that it has."""
        scores = dict.fromkeys("efghijklm", (0.95, 0.1, 0.2)) | {"b": (0.75, 0.1)}
        grades = grades_of(scores)
        available = pass_at(grades)
        medals = available[(available["split"] == "low") & (available["rate"] == "any_medal")].set_index("k")
        assert medals["competitions"].to_dict() == {1: 10, 2: 10, 3: 9}
        assert medals["mean"].to_dict() == pytest.approx({1: (9 / 3 + 1 / 2) / 10, 2: (9 * 2 / 3 + 1) / 10, 3: 1})
        complete = pass_at(grades, counting=Counting(incomplete="exclude"))
        assert set(complete["k"]) == {1, 2}
        padded = pass_at(grades, counting=Counting(incomplete="fail"))
        assert set(padded["competitions"]) == {10}
        for treatment, table in (("available", available), ("exclude", complete), ("fail", padded)):
            headline = rate(aggregate(grades, incomplete=cast("Any", treatment)).rates, split="low", rate="any_medal")
            assert rate(table, split="low", rate="any_medal", k=1)["mean"] == pytest.approx(headline["mean"])

    def test_a_k_that_few_competitions_reach_is_left_out(self) -> None:
        """Three seeds of one competition and one of another: pass@3 would describe the first alone."""
        assert set(pass_at(grades_of({"a": (0.95, 0.1, 0.2), "b": (0.75,)}))["k"]) == {1}

    def test_the_estimate_is_the_mean_over_all_choices_of_k_runs(self) -> None:
        grades = grades_of({"a": (0.95, 0.1, 0.2, 0.8), "b": (0.75, 0.1, 0.1, 0.1)})
        for k in (1, 2, 4):
            draws = [list(itertools.combinations(row, k)) for row in ((1, 0, 0, 1), (1, 0, 0, 0))]
            literal = np.mean([np.mean([max(draw) for draw in of_one]) for of_one in draws])
            row = rate(pass_at(grades), split="low", rate="any_medal", k=k)
            assert row["mean"] == pytest.approx(literal)
            assert 0 <= row["ci_low"] < row["ci_high"] <= 1, "no point, although all competitions may succeed"

    def test_an_attempt_without_a_score_beats_nobody(self) -> None:
        points = {"b": [1 - n / 20 for n in range(21)]}
        table = competition_table(grades_of({"b": (0.75, None, 0.5), "c": (None, None)}), {**points, "c": points["b"]})
        assert rate(table, competition_id="b")["human_percentile"] == pytest.approx((75 + 0 + 50) / 3)
        assert rate(table, competition_id="c")["human_percentile"] == 0

    def test_a_failed_grading_is_no_attempt(self) -> None:
        grades = grades_of()
        grades.loc[0, "outcome"] = "failed"
        assert rate(best_of(grades), competition_id="a", k=1)["attempts"] == 2

    def test_one_row_a_competition_with_the_human_percentile(self) -> None:
        points = {"a": [1 - n / 20 for n in range(21)]}
        table = competition_table(grades_of(), points)
        row = rate(table, competition_id="a")
        assert (row["attempts"], row["valid"], row["medals"], row["best_score"]) == (3, 3, 2, 0.95)
        assert row["human_percentile"] == pytest.approx(np.mean([95, 60, 72]))
        assert rate(table, competition_id="b")["valid"] == 2
        assert math.isnan(rate(table, competition_id="b")["human_percentile"])


def snapshot(name: str, seed: int, hours: float, score: float) -> dict[str, Any]:
    medal = medal_for(score, HIGHER)
    who: dict[str, Any] = {"run_group": "g", "run_id": f"g-{name}-{seed}", "competition_id": name, "seed": seed}
    flags = {"any_medal": medal is not None, "above_median": above_median(score, HIGHER)}
    return {**who, "at_seconds": hours * 3600.0, "score": score, **flags}


class TestOverTime:
    GRADES = grades_of({"a": (0.95, 0.6), "b": (0.75, 0.72)})
    SNAPSHOTS = pd.DataFrame(
        [
            snapshot("a", 0, 0.5, 0.75),
            snapshot("a", 0, 3, 0.2),  # it threw its medal away
            snapshot("a", 0, 5.5, 0.95),
            snapshot("a", 1, 1, 0.6),
            snapshot("b", 0, 1.5, 0.75),
            snapshot("b", 1, 4, 0.72),
        ]
    )

    def test_each_run_counts_with_its_newest_snapshot_until_then(self) -> None:
        table = over_time(self.GRADES, self.SNAPSHOTS)
        found = table[(table["split"] == "all") & (table["rate"] == "any_medal")]
        seeds = {1: (0.5, 0.0), 2: (1.0, 0.0), 4: (0.5, 0.5), 6: (1.0, 0.5)}
        assert [at / 3600 for at in found["at_seconds"]] == list(seeds)
        assert found["mean"].tolist() == [np.mean(values) for values in seeds.values()]
        assert found["sem"].tolist() == pytest.approx([stats.sem(values) for values in seeds.values()])

    def test_a_run_without_a_submission_counts_nothing_all_along(self) -> None:
        """Three seeds of three competitions; one run of each seed made no submission, all others earned a medal."""
        rows = [grade_row(name, seed, None if name == "c" else 0.95) for name in "abc" for seed in range(3)]
        grades = pd.DataFrame(rows)
        for with_one in ("ab", "abc"):  # a submission that was there once, and was removed, is none
            snapshots = pd.DataFrame([snapshot(name, seed, 1, 0.95) for name in with_one for seed in range(3)])
            table = over_time(grades, snapshots, at=[3600.0, 7200.0])
            found = table[(table["split"] == "all") & (table["rate"] == "any_medal")]
            assert found["mean"].tolist() == pytest.approx([2 / 3, 2 / 3])
        assert set(found["seeds"]) == {3}

    def test_a_run_without_snapshots_counts_from_its_end(self) -> None:
        snapshots = self.SNAPSHOTS[self.SNAPSHOTS["run_id"] != "g-b-1"]
        runs = pd.DataFrame(
            [
                {"run_group": "g", "run_id": f"g-{n}-{s}", "competition_id": n, "seed": s, "agent": "agent"}
                | {"edition": "v1", "duration_seconds": 4 * 3600.0}
                for n in "ab"
                for s in (0, 1)
            ]
        )
        table = over_time(self.GRADES, snapshots, runs, at=[3600.0 * hours for hours in (3, 4)])
        found = table[(table["split"] == "all") & (table["rate"] == "any_medal")]
        assert found["mean"].tolist() == [0.25, 0.5]

    def test_the_curve_of_an_edition_has_its_own_snapshots(self) -> None:
        second = self.GRADES.assign(edition="v2", any_medal=False)
        snapshots = pd.concat(
            [self.SNAPSHOTS.assign(edition="v1"), self.SNAPSHOTS.assign(edition="v2", any_medal=False)]
        )
        table = over_time(pd.concat([self.GRADES, second]), snapshots)
        found = table[(table["split"] == "all") & (table["rate"] == "any_medal")]
        assert found.loc[found["edition"] == "v2", "mean"].tolist() == [0.0] * 4
        assert found.loc[found["edition"] == "v1", "mean"].tolist() == [0.25, 0.5, 0.5, 0.75]

    def test_without_snapshots_there_is_nothing(self) -> None:
        assert over_time(self.GRADES, pd.DataFrame()).empty
        assert moments(0) == []


class TestUsage:
    USAGE = pd.DataFrame(
        [
            {"run_group": "g", "run_id": "g-a-0", "competition_id": "a", "seed": 0, "model": "m", "input_tokens": 100}
            | {"output_tokens": 10, "cost_usd": 0.5, "latency_seconds": 1.0},
            {"run_group": "g", "run_id": "g-a-0", "competition_id": "a", "seed": 0, "model": "n", "input_tokens": 200}
            | {"output_tokens": 20, "cost_usd": 1.5, "latency_seconds": 2.0},
            {"run_group": "g", "run_id": "g-b-0", "competition_id": "b", "seed": 0, "model": "m", "input_tokens": 300}
            | {"output_tokens": 30, "cost_usd": None, "latency_seconds": 3.0},
        ]
    )

    def test_by_run(self) -> None:
        first, second = usage_by_run(self.USAGE).to_dict("records")
        assert (first["calls"], first["models"], first["input_tokens"], first["cost_usd"]) == (2, "m, n", 300, 2.0)
        assert math.isnan(second["cost_usd"]), "an unknown price is not a price of nothing"

    def test_by_series_and_medal(self) -> None:
        (row,) = usage_by_series(grades_of({"a": (0.95,), "b": (0.75,)}), self.USAGE).to_dict("records")
        assert (row["runs"], row["runs_with_usage"], row["medals"], row["calls"]) == (2, 2, 2, 3)
        assert math.isnan(row["cost_usd"]), "one run's cost is unknown, and so is that of all"
        assert row["tokens_per_medal"] == 330.0
        priced = self.USAGE.fillna({"cost_usd": 4.0})
        (row,) = usage_by_series(grades_of({"a": (0.95,), "b": (0.75,)}), priced).to_dict("records")
        assert (row["cost_usd"], row["cost_per_run"], row["cost_per_medal"]) == (6.0, 3.0, 3.0)
        (row,) = usage_by_series(grades_of({"a": (0.1,)}), priced[:2]).to_dict("records")
        assert row["cost_usd"] == 2.0
        assert math.isnan(row["cost_per_medal"])

    def test_a_run_with_a_call_of_unknown_price_has_no_known_cost(self) -> None:
        unpriced = self.USAGE.assign(cost_usd=[0.5, math.nan, math.nan])
        assert math.isnan(usage_by_run(unpriced)["cost_usd"][0])
        refused = unpriced.assign(input_tokens=[100, math.nan, 300], output_tokens=[10, 0, 30])
        assert usage_by_run(refused)["cost_usd"][0] == 0.5, "a call that failed used nothing"


class TestCompare:
    def test_what_changed_and_how_sure_that_is(self) -> None:
        after = {"a": (0.95, 0.6, 0.72), "b": (0.75, 0.8, 0.4), "c": (0.1, 0.2, 0.3), "d": (0.99, 0.95, 0.9)}
        found = compare(grades_of(), grades_of(after, group="h"))
        assert dict(zip(found.competitions["competition_id"], found.competitions["change"], strict=True)) == {
            "a": "same",
            "b": "better",
            "c": "worse",
            "d": "better",
        }
        rows = found.differences[found.differences["split"] == "all"]
        row = rate(rows, rate="any_medal", question="these")
        before, now = [2 / 3, 1 / 3, 1 / 3, 2 / 3], [2 / 3, 2 / 3, 0, 1]
        differences = np.subtract(now, before)
        assert row["difference"] == pytest.approx(differences.mean())
        assert math.isnan(rate(rows, rate="any_medal", question="like_these")["p_value"]), "four competitions are few"
        scores = rate(found.competitions, competition_id="d")
        assert scores["score_difference"] == pytest.approx(statistics.fmean(after["d"]) - statistics.fmean(SCORES["d"]))
        assert scores["score_sem"] == pytest.approx(math.hypot(stats.sem(after["d"]), stats.sem(SCORES["d"])))

    def test_what_only_one_has_is_named_and_left_out(self) -> None:
        found = compare(grades_of({"a": (0.5,), "b": (0.5,)}), grades_of({"b": (0.5,), "c": (0.5,)}))
        assert (found.only_a, found.only_b) == (["a"], ["c"])
        assert found.competitions["competition_id"].tolist() == ["b"]

    def test_an_invalid_submission_where_there_was_a_score_is_worse(self) -> None:
        found = compare(grades_of({"a": (0.2,)}), grades_of({"a": (None,)}))
        assert found.competitions["change"].tolist() == ["worse"]
