"""Simulations of the statistics: how often intervals contain the truth, and whether probabilities are what they say.

Each simulation draws results whose truth is known, has them evaluated by the functions that reports use, and prints a
table:

    python -m benchmarks.coverage [NAME]...

The numbers repeat, because the generators have fixed seeds.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.predictions import (
    distribution_coverage,
    pass_at_k_error,
    power_of_plans,
    rank_coverage,
    split_noise_calibration,
)
from grading.statistics.contamination import around_cutoff, between_cutoffs
from grading.statistics.counting import Counting, Incomplete, cells_of
from grading.statistics.differences import paired
from grading.statistics.intervals import count_interval, interval_over_competitions, interval_over_runs
from grading.statistics.leakage import stratified_difference
from grading.statistics.resampling import Floats
from grading.statistics.seeds import Interval, mean, t_interval, welch
from grading.statistics.series import RATES
from grading.statistics.usage import per_unit

Lines = Iterator[str]


def run_intervals(repetitions: int = 2_000) -> Lines:
    """Intervals of a rate over other runs of the same competitions: coverage and mean width in points.

    "t over seeds" is Student's t over the rates of seeds. Chances of competitions are alike, or mostly near 0 and 1.
    """
    generator = np.random.default_rng(3)
    chances = np.repeat([0.03, 0.4], (22, 53))
    tables = (generator.random((repetitions, 75, 3)) < chances[:, None]).astype(float)
    unlike = [interval_over_runs([*table[:22].tolist(), *table[22:, :1].tolist()]) for table in tables]
    yield f"22 x 3 around 3 % and 53 x 1 around 40 %: {_covered(unlike, float(chances.mean()))}"
    for competitions, seeds in ((3, 2), (22, 2), (22, 3), (75, 3)):
        for name, chances in _chances(generator, competitions):
            runs = (generator.random((repetitions, competitions, seeds)) < chances[:, None]).astype(float)
            found = [interval_over_runs(table.tolist()) for table in runs]
            usual = [t_interval(table.mean(axis=0).tolist()) for table in runs]
            truth = float(chances.mean())
            yield f"{competitions} x {seeds}, {name}: {_covered(found, truth)}; t over seeds {_covered(usual, truth)}"


def curve_intervals(repetitions: int = 1_000) -> Lines:
    """Intervals of mean percentiles and of mean counts over other runs: coverage, and mean width in percent of 1.

    Runs without a submission have the percentile 0. Counts are Poisson, or vary more from run to run.
    """
    generator = np.random.default_rng(9)
    for competitions, seeds in ((3, 2), (22, 3), (75, 3)):
        size = (repetitions, competitions, seeds)
        centres = generator.uniform(0.02, 0.98, competitions)
        for without in (0.0, 0.3, 0.8):
            alpha, beta = 5 * centres[:, None], 5 * (1 - centres[:, None])
            shares = generator.beta(alpha, beta, size) * (generator.random(size) >= without)
            found = [interval_over_runs(table.tolist(), binary=False) for table in shares]
            truth = float(centres.mean()) * (1 - without)
            yield f"{competitions} x {seeds}, {100 * without:.0f} % without a submission: {_covered(found, truth)}"
        rates = generator.gamma(2, 3, competitions)
        for name, factor in (("Poisson", np.ones(size)), ("overdispersed", generator.gamma(1, 1, size))):
            counts = generator.poisson(rates[:, None] * factor).astype(float)
            found = [count_interval(table.tolist()) for table in counts]
            yield f"{competitions} x {seeds}, counts, {name}: {_covered(found, float(rates.mean()))}"


def competition_intervals(repetitions: int = 2_000) -> Lines:
    """Intervals of a rate over other competitions, too: coverage and mean width in points.

    Competitions are drawn anew from a population with a mean chance of 5, 16, 50 and 98 %.
    """
    generator = np.random.default_rng(4)
    for competitions, seeds in ((22, 1), (22, 3), (75, 3)):
        for truth in (0.05, 0.16, 0.5, 0.98):
            chances = generator.beta(0.5 * truth, 0.5 * (1 - truth), (repetitions, competitions, 1))
            runs = (generator.random((repetitions, competitions, seeds)) < chances).mean(axis=2)
            found = [interval_over_competitions(means.tolist()) for means in runs]
            yield f"{competitions} x {seeds}, mean chance {100 * truth:.0f} %: {_covered(found, truth)}"


def difference_errors(repetitions: int = 1_000) -> Lines:
    """Tests of a difference: how often equal agents are told apart (5 % is meant), and how often a better one is.

    The better agent is better in every competition by the same step of its latent score; medals are scores above a
    threshold, and percentiles the scores themselves. "Like these" draws competitions anew, with a skill of each agent.
    """
    generator = np.random.default_rng(5)
    for competitions, seeds in ((22, 3), (75, 3)):
        for step in (0.0, 0.3):
            found: dict[str, list[bool]] = {}
            for _ in range(repetitions):
                levels = generator.normal(-1, 1.2, competitions)[:, None]
                own = generator.normal(0, 0.4, (2, competitions, 1))
                for question, extra in (("these", 0 * own), ("like_these", own)):
                    scores = levels + extra + generator.normal(0, 0.5, (2, competitions, seeds))
                    scores[1] += step
                    for outcome, values in (("medals", (scores > 0).astype(float)), ("percentiles", ndtr(scores))):
                        sides = [{str(name): runs for name, runs in enumerate(side.tolist())} for side in values]
                        each = paired(sides[0], sides[1], binary=outcome == "medals")
                        found.setdefault(f"{question}, {outcome}", []).append(getattr(each, question).p_value < 0.05)
            shares = ", ".join(f"{name} {100 * np.mean(hits):.1f} %" for name, hits in found.items())
            yield f"{competitions} x {seeds}, {'equal agents' if not step else 'a better one'}: told apart {shares}"


def missing_runs(repetitions: int = 500) -> Lines:
    """Ungraded runs of 75 competitions x 3 seeds: the error of the headline by treatment.

    It is the root mean square error against the true chances, in points, of the groups that have a headline.
    """
    generator = np.random.default_rng(6)
    treatments: tuple[Incomplete, ...] = get_args(Incomplete)
    competitions, seeds = 75, 3
    for share in (0.002, 0.01, 0.05):
        errors: dict[str, list[float]] = {name: [] for name in treatments}
        for _ in range(repetitions):
            chances = generator.beta(0.2, 0.8, competitions)
            table = _grades(generator.random((competitions, seeds)) < chances[:, None])
            ungraded = generator.random(len(table)) < share
            table.loc[ungraded, "outcome"] = "failed"
            for name in treatments:
                everything = [
                    cells for cells in cells_of(table, counting=Counting(incomplete=name)) if cells.split == "all"
                ]
                errors[name].append(
                    mean([mean(runs) for runs in everything[0].outcomes("any_medal").values()]) - chances.mean()
                )
        cells = []
        for treatment, found in errors.items():
            known = [error for error in found if not math.isnan(error)]
            lost = f", {100 * (1 - len(known) / len(found)):.0f} % without" if len(known) < len(found) else ""
            cells.append(f"{treatment} {100 * math.sqrt(np.mean(np.square(known))):.2f}{lost}")
        yield f"{100 * share:.1f} % ungraded: {'; '.join(cells)}"


def _chances(generator: np.random.Generator, competitions: int) -> Iterator[tuple[str, Floats]]:
    """Chances of a medal by competition: names, and arrays of shape (competitions,)."""
    for share in (0.02, 0.16, 0.5):
        yield f"all {100 * share:.0f} %", np.full(competitions, share)
    for share in (0.16, 0.5, 0.9):
        beta = generator.beta(0.5 * share, 0.5 * (1 - share), competitions)
        yield f"around {100 * share:.0f} %", beta
    yield "all but one 98 %", np.array([0.0, *[0.98] * (competitions - 1)])


def _covered(intervals: Sequence[Interval], truth: float) -> str:
    inside = np.mean([each.low - 1e-12 <= truth <= each.high + 1e-12 for each in intervals])
    return f"{100 * inside:.1f} % (width {100 * np.mean([each.high - each.low for each in intervals]):.1f})"


def _grades(medals: NDArray[np.bool_]) -> pd.DataFrame:
    """A table of grades with a row for each of competitions x seeds."""
    competitions, seeds = np.indices(medals.shape)
    facts = {"run_group": "g", "agent": "a", "edition": "v1", "outcome": "valid", "complexity": "low", "category": "x"}
    table = pd.DataFrame({"competition_id": competitions.ravel().astype(str), "seed": seeds.ravel(), **facts})
    return table.assign(run_id=table.index.astype(str), **dict.fromkeys(RATES, medals.ravel()))


def medals_per_dollar_coverage(repetitions: int = 1_000) -> Lines:
    """Intervals of medals per dollar: how often they contain the ratio of the expected sums.

    Competitions with a chance of a medal and a cost of their own, which go together in half of the cases.
    """
    generator = np.random.default_rng(4)
    for competitions, seeds, mean_rate in itertools.product((5, 22, 75), (1, 3), (0.03, 0.2, 0.6)):
        for tied in (False, True):
            truth = mean_rate / (5 * (0.3 + mean_rate) if tied else 5)
            hits = []
            for _ in range(repetitions):
                rates = generator.beta(mean_rate, 1 - mean_rate, competitions)
                size = 5 * (0.3 + rates) if tied else np.full(competitions, 5.0)
                costs = generator.gamma(4, size[:, None] / 4, (competitions, seeds))
                medals = generator.random((competitions, seeds)) < rates[:, None]
                won, spent = medals.sum(axis=1).astype(float), costs.sum(axis=1)
                found = per_unit(won.tolist(), spent.tolist(), medals.size).interval
                hits.append(found.low <= truth <= found.high)
            words = f"{competitions} competitions x {seeds} seeds, {100 * mean_rate:g} % medals"
            yield f"{words}{', costs go with chances' * tied}: {100 * np.mean(hits):.1f} %"


def leakage_errors(repetitions: int = 2_000) -> Lines:
    """Leaky against other competitions: coverage of the interval, and how often leaks that change nothing are found.

    Chances depend on the complexity, in which leaky competitions are more or less frequent, as in edition v1; leaks add
    nothing or 20 points. "Unstratified" is Welch's interval of the plain difference.
    """
    generator = np.random.default_rng(8)
    for step in (0.0, 0.2):
        hits: dict[str, list[bool]] = {"stratified": [], "unstratified": []}
        false = []
        for _ in range(repetitions):
            strata = np.repeat([0, 1, 2], (22, 38, 15))
            leaky = np.concatenate([generator.permutation(n) < m for n, m in ((22, 15), (38, 15), (15, 3))])
            chances = np.clip(generator.beta(0.6, 0.6, 75) * np.array([0.8, 0.5, 0.3])[strata] + step * leaky, 0, 1)
            values = generator.binomial(3, chances) / 3
            found = stratified_difference(values.tolist(), leaky.tolist(), [str(each) for each in strata])
            plain = welch(values[~leaky].tolist(), values[leaky].tolist())
            hits["stratified"].append(found.interval.low <= step <= found.interval.high)
            hits["unstratified"].append(plain.interval.low <= step <= plain.interval.high)
            false.append(found.p_value < 0.05)
        covered = ", ".join(f"{name} {100 * np.mean(each):.1f} %" for name, each in hits.items())
        yield f"leaks add {100 * step:.0f} points: covered {covered}; p < 0.05 in {100 * np.mean(false):.1f} %"


def contamination_errors(repetitions: int = 1_000) -> Lines:
    """Models with different cutoffs: coverage of the interval, and how often no contamination is taken for some.

    The later model is better by 10 points, and newer competitions are harder. On those that ended before its cutoff a
    model gains nothing or 20 points. "Before and after" is the difference of the later model alone.
    """
    generator = np.random.default_rng(9)
    who = pd.DataFrame({"run_group": ["a", "b"], "agent": ["early", "late"], "edition": "v1"})
    cutoffs = {("a", "early"): "2020-01", ("b", "late"): "2022-01"}
    for (seen, between, unseen), gain in itertools.product(((8, 8, 6), (38, 7, 30), (38, 26, 11)), (0.0, 0.2)):
        ended = np.repeat(["2019-06", "2021-06", "2023-06"], [seen, between, unseen])
        competitions = len(ended)
        hits: dict[str, list[tuple[bool, bool]]] = {"models": [], "before and after": []}
        for _ in range(repetitions):
            ease = generator.uniform(0.2, 0.6, competitions) - 0.1 * (ended > "2020") - 0.1 * (ended > "2022")
            chances = ease + np.array([[0.0], [0.1]]) + generator.uniform(-0.1, 0.1, (2, competitions))
            chances += gain * (ended <= np.array([["2020-01"], ["2022-01"]]))
            found = who.merge(pd.DataFrame({"competition_id": np.arange(competitions), "ended": ended}), "cross")
            found = found.assign(any_medal=generator.binomial(3, chances.clip(0, 1)).ravel() / 3, percentile=math.nan)
            late = around_cutoff(found, {("b", "late"): "2022-01"})
            for name, truth, row in (
                ("models", gain, between_cutoffs(found, cutoffs).iloc[0]),
                ("before and after", -gain, late[late["measure"] == "any_medal"].iloc[0]),
            ):
                hits[name].append((row["ci_low"] <= truth <= row["ci_high"], row["p_value"] < 0.05))
        shares = {name: 100 * np.mean(each, axis=0) for name, each in hits.items()}
        words = ", ".join(
            f"{name} covered {each[0]:.1f} %, p < 0.05 in {each[1]:.1f} %" for name, each in shares.items()
        )
        yield f"{competitions} x 3, {between} between, gain {100 * gain:.0f} points: {words}"


SIMULATIONS: dict[str, Callable[[], Lines]] = {
    "runs": run_intervals,
    "curves": curve_intervals,
    "competitions": competition_intervals,
    "differences": difference_errors,
    "missing": missing_runs,
    "split-noise": split_noise_calibration,
    "ranks": rank_coverage,
    "distribution": distribution_coverage,
    "medals-per-dollar": medals_per_dollar_coverage,
    "leakage": leakage_errors,
    "contamination": contamination_errors,
    "pass-at-k": pass_at_k_error,
    "power": power_of_plans,
}
"""The simulations by name. Each yields the lines that are printed."""


def main() -> None:
    """Print the results of the simulations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SIMULATIONS)}; default: all")
    names = parser.parse_args().names
    if unknown := sorted(set(names) - SIMULATIONS.keys()):
        parser.error(f"unknown simulation {', '.join(unknown)}; there are {', '.join(SIMULATIONS)}")
    for name in names or SIMULATIONS:
        simulation = SIMULATIONS[name]
        print(f"{name}: {(simulation.__doc__ or '').splitlines()[0]}")
        for line in simulation():
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
