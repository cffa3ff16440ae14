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
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from grading.medals import Thresholds
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
    yield "stated between   before: stated, true   now: stated, true"
    bins = (0.0, 0.02, 0.1, 0.3, 0.7, 0.9, 0.98, 1.01)
    tables = {name: np.array(pairs, dtype=float) for name, pairs in rows.items()}
    for low, high in itertools.pairwise(bins):
        cells = [_stated_and_true(table, low, high) for table in tables.values()]
        yield f"{100 * low:4.0f} to {min(100, 100 * high):3.0f} %    {cells[0]:>20}   {cells[1]:>17}"
    for name, table in tables.items():
        yield f"{name}: mean squared error (Brier) {np.mean((table[:, 0] - table[:, 1]) ** 2):.4f}"


def _stated_and_true(pairs: NDArray[np.float64], low: float, high: float) -> str:
    inside = pairs[(pairs[:, 0] >= low) & (pairs[:, 0] < high)]
    return "{:.1f} %, {:.1f} %".format(*(100 * inside.mean(axis=0))) if len(inside) else "none"


SIMULATIONS: dict[str, Callable[[], Lines]] = {
    "split-noise": split_noise_calibration,
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
