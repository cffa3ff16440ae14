"""The simulations of the statistics find what docs/statistics.md promises; here with fewer repetitions."""

from __future__ import annotations

import re

from benchmarks.coverage import (
    SIMULATIONS,
    competition_intervals,
    contamination_errors,
    curve_intervals,
    difference_errors,
    distribution_coverage,
    missing_runs,
    pass_at_k_error,
    power_of_plans,
    rank_coverage,
    run_intervals,
    split_noise_calibration,
)


def test_every_simulation_has_a_line_that_says_what_it_is() -> None:
    assert all((simulation.__doc__ or "").strip() for simulation in SIMULATIONS.values())


def test_intervals_of_rates_cover_the_truth_whatever_the_chances_are() -> None:
    for simulation in (run_intervals, competition_intervals):
        covered = [float(line.split(": ")[1].split(" %")[0]) for line in simulation(300)]
        assert min(covered) >= 90


def test_equal_agents_are_seldom_told_apart_and_percentiles_find_more_than_medals() -> None:
    lines = list(difference_errors(200))
    shares = [[float(share) for share in re.findall(r"([\d.]+) %", line)] for line in lines]
    assert all(share < 10 for line, row in zip(lines, shares, strict=True) if "equal" in line for share in row)
    for line, (these, these_percentiles, like_these, like_percentiles) in zip(lines, shares, strict=True):
        if "better" in line:
            assert these_percentiles > these
            assert like_percentiles > like_these


def test_a_few_ungraded_runs_cost_available_cases_little() -> None:
    for line in missing_runs(60):
        errors = {name: float(error) for name, error in re.findall(r"(available|exclude) ([\d.]+)", line)}
        assert errors["available"] < errors["exclude"]


def test_probabilities_of_medals_are_nearer_the_truth_than_those_around_the_score_itself() -> None:
    *_, before, now = split_noise_calibration(600)
    assert float(now.split()[-1]) < float(before.split()[-1])


def test_intervals_of_ranks_contain_the_true_rank() -> None:
    lines = list(rank_coverage(20))
    covered = [float(line.split(": ")[1].split(" %")[0]) for line in lines if "% of intervals" in line]
    assert len(covered) == 4
    assert all(share >= 90 for share in covered)


def test_intervals_of_distributions_contain_the_truth_more_often_than_the_usual_bootstrap() -> None:
    rows = [line.split(": ")[1] for line in distribution_coverage(30)]
    covered = [{part.rsplit(" ", 2)[0]: float(part.split()[-2]) for part in row.split(", ")} for row in rows]
    means = {name: sum(row[name] for row in covered) / len(covered) for name in covered[0]}
    assert means["IQM"] > means["IQM n of n"]
    assert means["IQM"] > 85
    assert means["profile"] > 85


def test_bands_of_curves_contain_the_truth() -> None:
    covered = [float(line.split(": ")[1].split(" %")[0]) for line in curve_intervals(100)]
    assert sum(covered) / len(covered) > 90


def test_models_with_different_cutoffs_seldom_show_contamination_that_is_none() -> None:
    for line in contamination_errors(60):
        models, alone = (float(share) for share in re.findall(r"p < 0.05 in ([\d.]+) %", line))
        if "gain 0" in line:
            assert models < 20
            assert alone > models, "newer competitions are harder"


def test_pass_at_k_of_all_graded_runs_is_always_known() -> None:
    lines = list(pass_at_k_error(20))
    assert all("n/a in 0 %" in line for line in lines if "now" in line)
    assert not any("n/a in 0 %" in line for line in lines if "before" in line)


def test_plans_state_the_power_that_comparisons_have() -> None:
    for line in power_of_plans(100):
        stated, found = (float(part.split()[-2]) for part in line.split(", ")[-2:])
        assert abs(stated - found) < 20, line
