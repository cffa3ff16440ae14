"""The noise of scores that the test set causes, and the scale of scores, both compared with the leaderboard."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING

from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.csvfile import Row
from grading.competition_checks.subject import Skipped
from grading.competition_checks.submissions import (
    Rows,
    mixture,
    number_cells,
    numbers_of,
    score_rows,
    write_rows,
)
from grading.statistics.split_noise import LUCK, split_noise
from grading.workers.halves import score_halves

if TYPE_CHECKING:
    from pathlib import Path

    from grading.competition_checks.measured import Measured

_STEPS = 12
"""Bisections of the amount of error."""
_DRAWS, _SECONDS = 100, 10.0
_MAX_DIFFERENCE = 0.25
"""Of the sample submission's score on Kaggle and here, as a share of its distance from the right answers'."""

_MAX_TIMES = 10
"""Of the last team's distance from the right answers: the sample submission's is no greater, as teams start with it."""


def noise(measured: Measured) -> list[str]:
    """The test set is large enough to tell gold from bronze.

    Measured is a submission that scores about as bronze requires: right answers with errors. The standard error of its
    score comes from random halves of the test set, as that of runs does (`mlebench examine split-noise`).
    """
    thresholds = measured.thresholds
    score, error, units = sampling_error(
        measured, write_rows(measured.subject, measured.rows.header, _worth_bronze(measured))
    )
    distance = abs(thresholds.gold - thresholds.bronze)
    if not error > 0:
        raise Skipped("a score worth bronze is the same in all halves of the test set, so its noise is not known")
    luck = 1 - NormalDist().cdf(distance / error)
    measured.figures["noise"] = {"units": float(units), "standard error": error, "luck": round(luck, 4), "score": score}
    problems = [measured.found_groups.note()] if measured.found_groups else []
    if luck <= LUCK[0]:
        return problems
    return [
        *problems,
        f"with {units} units in the test set, a score worth bronze has a standard error of {error:.2g}; gold is "
        f"{distance:.2g} better, and earned by luck with probability {luck:.2f}",
    ]


def sampling_error(measured: Measured, path: Path) -> tuple[float, float, int]:
    """Score of a submission, its standard error, and the number of units in the test set.

    Raises `Skipped` if the test set cannot be cut into halves that can be scored.
    """
    subject, competition, edition = measured.subject, measured.subject.competition, measured.subject.edition
    score, submission = subject.score(path), competition.read_submission(path, edition)
    halves = score_halves(
        lambda table, answers: competition.score_table(table, answers, edition),
        submission,
        subject.answers,
        competition.facts.resampling,
        whole=score,
        draws=_DRAWS,
        seconds=_SECONDS,
    )
    if not halves.scores:
        raise Skipped(halves.message or "the score is not a number")
    noise = split_noise(score, halves.scores, halves.units, halves.drawn, measured.thresholds)
    return score, noise["standard_error"], halves.units


def _worth_bronze(measured: Measured) -> list[Row]:
    """Rows with errors whose score is about what bronze requires, found by bisection of the amount of error.

    Some rows are wrong in any case, even if the score is worse than bronze with one of them.
    """
    subject, rows, bronze = measured.subject, measured.rows, measured.thresholds.bronze
    wrong = _with_errors(rows)

    def is_worse(amount: float) -> bool:
        return measured.better(bronze, score_rows(subject, rows.header, wrong(amount)))

    low, high = 0.0, 1.0
    try:
        if is_worse(low) or not is_worse(high):
            raise Skipped("no mixture of right and wrong answers scores as bronze requires")
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_worse(middle) else (middle, high)
    except InvalidSubmission as error:
        raise Skipped(f"a mixture of right and wrong answers is not valid: {error}") from error
    return wrong(low) if wrong(low) != rows.right else wrong(high)


def _with_errors(rows: Rows) -> Callable[[float], list[Row]]:
    """A function of the amount of error, from 0 to 1, that makes a submission.

    Numbers move from the right one towards that of another row, all by this share of the way. Of rows with other cells,
    such as classes, this share is replaced by those of the sample submission.
    """
    others = random.Random(0).sample(range(len(rows.right)), len(rows.right))
    columns = {place: numbers_of([row[place] for row in rows.right]) for place in rows.predicted}
    moving = {place: numbers for place, numbers in columns.items() if numbers is not None}

    def wrong(amount: float) -> list[Row]:
        made = [list(row) for row in mixture(rows, amount)]
        for place, numbers in moving.items():
            moved = [own + amount * (numbers[other] - own) for own, other in zip(numbers, others, strict=True)]
            for row, cell in zip(made, number_cells(moved, numbers), strict=True):
                row[place] = cell
        return made if amount else rows.right

    return wrong


def scale(measured: Measured) -> list[str]:
    """Scores are on the leaderboard's scale: the sample submission is below its medals, or scores as on Kaggle."""
    subject, thresholds = measured.subject, measured.thresholds
    sample, right = (subject.score(subject.file(role)) for role in ("sample_submission", "gold_submission"))
    known = subject.competition.facts.leaderboard.sample
    if not math.isfinite(sample):
        raise Skipped("the sample submission has no finite score")
    measured.figures["scale"] = {"sample": sample, "right": right}
    problems = []
    if not measured.better(thresholds.bronze, sample):
        problems.append(f"the sample submission scores {sample:.5g}, and bronze requires {thresholds.bronze:.5g}")
    elif measured.better(sample, thresholds.median):
        problems.append(f"the sample submission scores {sample:.5g}, better than the median {thresholds.median:.5g}")
    percentiles = subject.competition.facts.leaderboard.percentiles
    worst = percentiles[-1] if percentiles and thresholds.human else None  # models are not as bad as some teams
    if worst is not None and abs(sample - right) > _MAX_TIMES * abs(worst - right):
        problems.append(
            f"the sample submission scores {sample:.5g}, the last team {worst:.5g}, right answers {right:.5g}"
        )
    if known is not None and abs(sample - known) > _MAX_DIFFERENCE * abs(right - known):
        problems.append(f"the sample submission scores {sample:.5g}, on Kaggle {known:.5g}")
    return problems
