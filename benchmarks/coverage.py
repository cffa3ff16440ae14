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
from scipy.stats import trim_mean

from grading.medals import Thresholds
from grading.statistics.profiles import distribution
from grading.statistics.ranks import ranking
from grading.statistics.resampling import Floats, Vary
from grading.statistics.split_noise import split_noise

Lines = Iterator[str]


def split_noise_calibration(repetitions: int = 4_000) -> Lines:
    """P(medal) on another test set: stated against the share of new test sets on which there is one.

    An accuracy on 59 to 1,000 units, true values around the threshold. "Before" is the share of stretched halves
    around the score itself, which takes the observed score for the true one.
    """
    generator = np.random.default_rng(0)
    rows: dict[str, list[tuple[float, bool]]] = {"before": [], "now": []}
    for repetition in range(repetitions):
        units, limit = ((59, 0.7), (200, 0.9), (1_000, 0.7))[repetition % 3]
        noise = math.sqrt(limit * (1 - limit) / units)
        truth = min(limit + noise * generator.uniform(-4, 4), 1.0)
        right, other = generator.random((2, units)) < truth
        drawn = units // 2
        halves = right[generator.random((100, units)).argsort(axis=1)[:, :drawn]].mean(axis=1)
        board = Thresholds(math.inf, math.inf, limit, limit, 100, lower_is_better=False)
        stated = split_noise(float(right.mean()), halves.tolist(), units, drawn, board)["any_medal_probability"]
        stretched = right.mean() + math.sqrt(drawn / (units - drawn)) * (halves - halves.mean())
        medal = round(float(other.mean()), 5) >= limit
        rows["before"].append((float((np.round(stretched, 5) >= limit).mean()), medal))
        rows["now"].append((stated, medal))
    yield from _calibration(rows, (0.0, 0.02, 0.1, 0.3, 0.7, 0.9, 0.98, 1.01))
    for name, pairs in rows.items():
        errors = [(probability - medal) ** 2 for probability, medal in pairs]
        yield f"{name}: mean squared error (Brier) {np.mean(errors):.4f}"


def rank_coverage(repetitions: int = 400) -> Lines:
    """Intervals of ranks and P(A > B): how often they contain the true rank, and are right.

    Five agents with medal rates by competition: difficulty, and what an agent is better at, vary. The true ranks on
    these competitions are those of the mean rates there, on competitions like these those of the agents' mean skill.
    """
    for competitions, seeds in ((22, 3), (75, 3)):
        for vary in get_args(Vary):
            generator = np.random.default_rng(1)
            inside, stated = [], []
            for _ in range(repetitions):
                skill = generator.normal(0, 0.5, 5)
                levels = -1 + 1.5 * generator.standard_normal(competitions) + skill[:, None]
                levels += 0.7 * generator.standard_normal((5, competitions))
                rates = 1 / (1 + np.exp(-levels))
                truth = rates.mean(axis=1) if vary == "runs" else skill
                runs = (generator.random((5, competitions, seeds)) < rates[:, :, None]).astype(float)
                found = ranking({str(agent): table for agent, table in enumerate(runs)}, vary, draws=500)
                ranks = 1 + (truth > truth[:, None]).sum(axis=1)
                inside += [each.low <= rank <= each.high for each, rank in zip(found.ranks, ranks, strict=True)]
                stated += [(found.better[f"{a}", f"{b}"], truth[a] > truth[b]) for a in range(5) for b in range(a)]
            covered = f"{100 * np.mean(inside):.1f} % of intervals"
            yield f"{competitions} competitions x {seeds} seeds, vary {vary}: {covered}"
            yield from _calibration({"P(A > B)": stated}, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.01))


def distribution_coverage(repetitions: int = 400) -> Lines:
    """Intervals of interquartile means and performance profiles: how often they contain the truth.

    Human percentiles of an agent on fixed competitions, each with a level and a spread of its own. "n of n" is the
    usual stratified bootstrap, as a baseline.
    """
    generator = np.random.default_rng(2)
    for competitions, seeds in ((22, 3), (75, 2), (75, 3), (75, 10)):
        level, size = generator.beta(0.7, 0.9, competitions)[:, None], generator.gamma(2, 4, competitions)[:, None]

        def runs_of(count: int, level: Floats = level, size: Floats = size) -> Floats:
            return 100 * generator.beta(level * size + 0.01, (1 - level) * size + 0.01, (len(level), count))

        truth = distribution(runs_of(4_000), draws=1)
        hits: dict[str, list[bool]] = {"IQM": [], "profile": [], "IQM n of n": []}
        for _ in range(repetitions):
            runs = runs_of(seeds)
            found = distribution(runs, draws=500)
            hits["IQM"].append(found.interval.low <= truth.iqm <= found.interval.high)
            band = zip(found.profile.low, truth.profile.share, found.profile.high, strict=True)
            hits["profile"] += [low <= share <= high for low, share, high in band][1:-1]  # the ends are 1 and 0
            chosen = generator.integers(0, seeds, (500, competitions, seeds))
            usual = trim_mean(runs[np.arange(competitions)[:, None], chosen].reshape(500, -1), 0.25, axis=1)
            low, high = np.quantile(usual, [0.025, 0.975])
            hits["IQM n of n"].append(low <= truth.iqm <= high)
        covered = ", ".join(f"{name} {100 * np.mean(hit):.1f} %" for name, hit in hits.items())
        yield f"{competitions} competitions x {seeds} seeds: {covered}"


def _calibration(rows: dict[str, list[tuple[float, bool]]], bins: Sequence[float]) -> Lines:
    """A line for each bin of stated probabilities: their mean, and the share of what came true."""
    tables = {name: np.array(pairs, dtype=float) for name, pairs in rows.items()}
    yield "stated between   " + "".join(f"{f'{name}: stated, true':>25}" for name in tables)
    for low, high in itertools.pairwise(bins):
        cells = []
        for table in tables.values():
            inside = table[(table[:, 0] >= low) & (table[:, 0] < high)]
            cells.append("{:.1f} %, {:.1f} %".format(*(100 * inside.mean(axis=0))) if len(inside) else "none")
        yield f"{100 * low:4.0f} to {min(100, 100 * high):3.0f} %   " + "".join(f"{cell:>25}" for cell in cells)


SIMULATIONS: dict[str, Callable[[], Lines]] = {
    "split-noise": split_noise_calibration,
    "ranks": rank_coverage,
    "distribution": distribution_coverage,
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
