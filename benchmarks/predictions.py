"""Simulations of predictions: probabilities of medals, ranks, distributions of percentiles, pass@k, plans.

They are called by `python -m benchmarks.coverage`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
from scipy.stats import trim_mean

from grading.medals import Thresholds
from grading.statistics.differences import Question, paired
from grading.statistics.power import power_of, standard_error, variances
from grading.statistics.profiles import distribution
from grading.statistics.ranks import ranking
from grading.statistics.resampling import Floats, Vary
from grading.statistics.seeds import pass_at_k
from grading.statistics.split_noise import split_noise

Lines = Iterator[str]


def split_noise_calibration(repetitions: int = 12_000) -> Lines:
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
    yield from _calibration(rows, (0.0, 0.01, 0.04, 0.1, 0.3, 0.7, 0.9, 0.96, 0.99, 1.01))
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


def pass_at_k_error(repetitions: int = 200) -> Lines:
    """pass@3 with ungraded runs: from all graded runs, against complete seeds only as before.

    75 competitions x 4 seeds, of which some runs are not graded. The error is that of the true pass@3 there.
    """
    for ungraded in (0.01, 0.03):
        generator = np.random.default_rng(3)
        errors: dict[str, list[float]] = {"before": [], "now": []}
        for _ in range(repetitions):
            rates = generator.beta(0.4, 0.8, 75)
            medals = generator.random((75, 4)) < rates[:, None]
            graded = generator.random((75, 4)) >= ungraded
            truth = float(np.mean(1 - (1 - rates) ** 3))
            complete = medals[:, graded.all(axis=0)]
            for name, rows in (
                ("before", list(complete)),
                ("now", [m[g] for m, g in zip(medals, graded, strict=True)]),
            ):
                values = [pass_at_k(len(row), int(row.sum()), 3) for row in rows if len(row) >= 3]
                errors[name].append(float(np.mean(values)) - truth if values else math.nan)
        for name, found in errors.items():
            missing, error = np.isnan(found).mean(), math.sqrt(np.nanmean(np.square(found))) if found else math.nan
            yield f"{100 * ungraded:g} % ungraded, {name}: n/a in {100 * missing:.0f} %, RMSE {100 * error:.2f} points"


def power_of_plans(repetitions: int = 1_000) -> Lines:
    """Power that `mlebench plan` states, against the share of simulated comparisons that find the difference.

    Medals of two agents. Variances are those of a pilot of both with three seeds of 75 competitions; tests are those of
    `mlebench compare`.
    """
    generator = np.random.default_rng(4)
    for competitions, seeds, difference in ((22, 3, 0.15), (75, 1, 0.1), (75, 3, 0.1)):

        def rates_of(count: int, difference: float = difference) -> Floats:
            level = generator.beta(0.6, 1.0, count) * (1 - 2 * difference)
            return np.array([level, level + difference * generator.uniform(0, 2, count)])

        def medals_of(rates: Floats, seeds: int) -> Floats:
            return (generator.random((*rates.shape, seeds)) < rates[:, :, None]).astype(float)

        stated: dict[Question, list[float]] = {"these": [], "like_these": []}
        found: dict[Question, list[bool]] = {"these": [], "like_these": []}
        for _ in range(repetitions):
            known = variances(list(medals_of(rates_of(75), 3)))
            sides = [
                {str(n): row.tolist() for n, row in enumerate(side)}
                for side in medals_of(rates_of(competitions), seeds)
            ]
            tests = paired(sides[0], sides[1])
            for question in stated:
                stated[question].append(power_of(difference, standard_error(known, competitions, seeds, question)))
                found[question].append(getattr(tests, question).p_value < 0.05)
        for question in get_args(Question)[seeds == 1 :]:
            line = f"stated {100 * np.mean(stated[question]):.0f} %, found {100 * np.mean(found[question]):.0f} %"
            yield f"{competitions} x {seeds}, {100 * difference:.0f} points, {question}: {line}"


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
