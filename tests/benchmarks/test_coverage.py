"""The simulations of the statistics find what docs/statistics.md promises; here with fewer repetitions."""

from __future__ import annotations

from benchmarks.coverage import SIMULATIONS, split_noise_calibration


def test_every_simulation_has_a_line_that_says_what_it_is() -> None:
    assert all((simulation.__doc__ or "").strip() for simulation in SIMULATIONS.values())


def test_probabilities_of_medals_are_nearer_the_truth_than_those_around_the_score_itself() -> None:
    *_, before, now = split_noise_calibration(600)
    assert float(now.split()[-1]) < float(before.split()[-1])
