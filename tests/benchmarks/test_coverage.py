"""The simulations of the statistics find what docs/statistics.md promises; here with fewer repetitions."""

from __future__ import annotations

from benchmarks.coverage import SIMULATIONS, distribution_coverage, rank_coverage, split_noise_calibration


def test_every_simulation_has_a_line_that_says_what_it_is() -> None:
    assert all((simulation.__doc__ or "").strip() for simulation in SIMULATIONS.values())


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
