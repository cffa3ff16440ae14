"""What attackers gain on public and private rows: `python -m benchmarks.ladder`.

An agent has a model and N calls to a service that tells scores on public rows, 30 % of all. It is told every score
(plain), or what the Ladder tells (`grading.ladder`). Printed is by how much the score of its final file exceeds that of
its first one on public and on private rows, in percent of the first score; positive is better, for errors as well.

climb      changes a tenth of the rows at random, and keeps what is told to be better
boost      averages those of many random changes that are told to be better (Blum and Hardt 2015, section 4)
one row    changes one row at a time, and keeps what is told to be better
nothing    climbs from a file without information, whose score hardly varies
labels     asks for public rows one by one, with tiny changes of a file that is the same in all rows: what is told to be
           better has the right sign, everything else the wrong one. Then it moves all rows by their signs
search     is no attack: it tries models that really differ, and keeps what is told to be better
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grading.ladder import Rung, climb

Array = NDArray[Any]
PUBLIC, CLASSES, DRAWS = 0.3, 20, 40
CALLS = (5, 50, 500)
ATTACKS = ("climb", "boost", "one row", "nothing", "labels", "search")
TINY = 1e-3


def _accuracy(predicted: Array, truth: Array) -> float:
    return float(np.mean((predicted > 0) == (truth > 0)))


def _auc(predicted: Array, truth: Array) -> float:
    negative, positive = np.sort(predicted[truth < 0]), predicted[truth > 0]
    below = sum(np.searchsorted(negative, positive, side) for side in ("left", "right"))
    return float(np.mean(below) / 2 / len(negative))


def _rmse(predicted: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def _log_loss(predicted: Array, truth: Array) -> float:
    return float(np.mean(np.logaddexp(0, -predicted * truth)))


def _map5(predicted: Array, truth: Array) -> float:
    places = (predicted > predicted[np.arange(len(truth)), truth][:, None]).sum(axis=1)
    return float(np.mean(np.where(places < 5, 1 / (places + 1), 0)))


@dataclass(frozen=True)
class Family:
    """A kind of metric, with test rows and predictions that resemble those of a competition."""

    name: str
    metric: Callable[[Array, Array], float]
    lower_is_better: bool
    push: float
    """Size of an attacker's changes, in standard deviations of predictions."""
    positives: float = 0.5
    least_step: float = 0.003
    """In runs it is a tenth of the distance between the gold threshold and the median."""

    def rows(self, count: int, generator: np.random.Generator) -> tuple[Array, Array, Array]:
        """The truth, a model's predictions, and what predictions move towards when a model becomes better."""
        if self.metric is _map5:
            truth = generator.integers(0, CLASSES, count)
            right = 2.0 * np.eye(CLASSES)[truth]
            return truth, 0.75 * right + generator.normal(size=right.shape), right
        if self.metric is _rmse:
            value = generator.normal(size=count)
            return value, 0.5 * value + 0.5 * generator.normal(size=count), value
        truth = np.where(generator.random(count) < self.positives, 1, -1)
        return truth, 0.7 * truth + generator.normal(size=count), truth


FAMILIES = (
    Family("accuracy", _accuracy, False, 2.0),
    Family("AUC", _auc, False, 1.0, positives=0.2),
    Family("RMSE", _rmse, True, 0.5, least_step=0.01),
    Family("log loss", _log_loss, True, 1.0, least_step=0.01),
    Family("MAP@5", _map5, False, 0.5),
)


class Service:
    """Tells scores on public rows, all of them or as the Ladder does; larger is better."""

    def __init__(self, family: Family, truth: Array, public: Array, ladder: bool) -> None:
        self.family, self.truth, self.public, self.ladder = family, truth[public], public, ladder
        self.best: Rung | None = None
        generator, count = np.random.default_rng(0), len(self.truth)
        self.halves = [generator.choice(count, count // 2, replace=False) for _ in range(DRAWS)]

    def tell(self, predicted: Array) -> float:
        """What is told of a file."""
        sign, mine = -1 if self.family.lower_is_better else 1, predicted[self.public]
        score = self.family.metric(mine, self.truth)
        if not self.ladder:
            return sign * score
        lower, least = self.family.lower_is_better, self.family.least_step
        scores = [self.family.metric(mine[half], self.truth[half]) for half in self.halves]
        noise = float(np.std(scores, ddof=1))
        self.best = climb(self.best, score, noise, lower_is_better=lower, least_step=least)
        assert self.best is not None
        return sign * self.best.shown


def _change(attack: str, row: int, push: float, towards: Array, generator: np.random.Generator) -> Array:
    """A change that an agent tries: noise, and for an honest one a step towards better predictions, or away."""
    noise = push * generator.normal(size=towards.shape)
    if attack == "search":
        return 0.08 * generator.normal() * towards + 0.1 * noise
    if attack == "one row":
        noise[np.arange(len(towards)) != row] = 0
        return 3 * noise
    noise[generator.random(len(towards)) > 0.1] = 0
    return noise


def gains(family: Family, attack: str, calls: int, rows: int, ladder: bool, seed: int) -> tuple[float, float]:
    """Relative gain of the final file over the first one on public and on private rows."""
    generator = np.random.default_rng(seed)
    truth, first, right = family.rows(math.ceil(rows / PUBLIC), generator)
    public = np.zeros(len(truth), dtype=bool)
    public[generator.choice(len(truth), rows, replace=False)] = True
    service = Service(family, truth, public, ladder)
    if attack in ("nothing", "labels"):
        first = np.zeros_like(first)
    current, told = first.copy(), service.tell(first)
    if attack == "boost":
        noises = [family.push / 4 * generator.normal(size=first.shape) for _ in range(calls - 1)]
        answers = np.array([service.tell(first + noise) for noise in noises])
        before = np.maximum.accumulate(np.array([told, *answers[:-1]])) if ladder else told
        kept = [noise for noise, better in zip(noises, answers > before, strict=True) if better]
        current = first + (np.sum(kept, axis=0) / math.sqrt(len(kept)) if kept else 0)
    elif attack == "labels":
        asked = np.flatnonzero(public)[: calls - 1]
        signs = -np.ones(len(asked))
        for number, row in enumerate(asked):
            current[row] = TINY
            answer = service.tell(current)
            if answer > told:
                told, signs[number] = answer, 1
            else:
                current[row] = 0
        current = first.copy()
        current[asked] = family.push * signs if (signs > 0).any() else 0
    else:
        order = generator.permutation(len(truth))
        for call in range(calls - 1):
            towards = right - current if family.metric is _rmse else right
            change = _change(attack, order[call % len(order)], family.push, towards, generator)
            answer = service.tell(current + change)
            if answer > told:
                told = answer
                current += change
    sign = -1 if family.lower_is_better else 1

    def gain(part: Array) -> float:
        before, after = (family.metric(file[part], truth[part]) for file in (first, current))
        return 100 * sign * (after - before) / before

    return gain(public), gain(~public)


def table(rows: int, repetitions: int) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| metric | attack | " + " | ".join(f"{way}, N = {n}" for n in CALLS for way in ("plain", "Ladder")) + " |"
    yield "|---|---|" + "---:|" * 2 * len(CALLS)
    for family in FAMILIES:
        for attack in ATTACKS:
            if attack in ("nothing", "labels") and family.metric is _map5:  # 0: no relative gain
                continue
            cells = []
            for calls in CALLS:
                for ladder in (False, True):
                    found = [gains(family, attack, calls, rows, ladder, seed) for seed in range(repetitions)]
                    public, private = np.mean(found, axis=0)
                    cells.append(f"{public:+.1f}, {private:+.1f}")
            yield f"| {family.name} | {attack} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ladder", description=__doc__)
    parser.add_argument("--rows", type=int, default=300, help="public rows (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=20, help="simulations of each case (default: %(default)s)")
    arguments = parser.parse_args()
    for line in table(arguments.rows, arguments.repetitions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
