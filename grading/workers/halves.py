"""Score a submission on random halves of the test set, which shows how much its score depends on the choice of rows.

Halves are drawn without replacement, so each is a test set that every grader accepts: no id occurs twice. The mean of a
random half varies around the mean of all n units with variance s^2 / n, which is the variance of the bootstrap (Shao
and Wu 1989, A general theory for jackknife variance estimation, Annals of Statistics 17(3)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grading.workers.cutting import Cutter, Uncuttable, cutter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from competitions.facts import Resampling

DRAWS, SECONDS = 200, 20.0
MIN_UNITS, MIN_DRAWS = 5, 20
_MAX_REFUSED_SHARE = 0.2


@dataclass(frozen=True)
class Halves:
    """Scores on halves of the test set; empty if it cannot be cut, with the reason in `message`."""

    scores: list[float] = field(default_factory=list)
    units: int = 0
    """Number of rows, patients, pages ... of the test set that are drawn as wholes."""
    drawn: int = 0
    """Number of units in a half."""
    message: str | None = None


def score_halves(
    score: Callable[[Any, Any], float],
    submission: Any,
    answers: Any,
    how: Resampling | None,
    *,
    whole: float,
    draws: int = DRAWS,
    seconds: float = SECONDS,
) -> Halves:
    """Scores of a valid submission on up to `draws` random halves of the test set, within about `seconds`.

    The result is deterministic, except for the number of draws if the time runs out. Nothing is raised: halves that a
    grader refuses are not counted, and `message` says why if too few are left.

    Args:
        score: the score of a table, given the table of answers.
        submission: the submission, as read.
        answers: the answers, as read.
        how: what is drawn; by default rows with the same id.
        whole: the score on all rows. Cutting must reproduce it when nothing is cut.
        draws: number of halves.
        seconds: time for all halves.
    """
    deadline = time.monotonic() + seconds
    try:
        cut = cutter(submission, answers, how)
    except Uncuttable as error:
        return Halves(message=str(error))
    count = cut.units
    if count < MIN_UNITS:
        return Halves(units=count, message=f"the test set has only {count} {'units' if count != 1 else 'unit'}")
    import numpy as np

    everything = np.ones(count, dtype=bool)
    started = time.monotonic()
    if not same_score(score_of(score, cut.of(everything))[0], whole):
        return Halves(units=count, message="the score is not a function of rows that are found by their ids")
    seconds_each = time.monotonic() - started
    if seconds_each * MIN_DRAWS / 2 > seconds:
        return Halves(units=count, message=f"scoring takes {seconds_each:.0f} s, too long for {MIN_DRAWS} halves")
    scores, refused, last_reason = draw_halves(score, cut, everything, draws, deadline)
    if len(scores) < MIN_DRAWS or refused > _MAX_REFUSED_SHARE * (refused + len(scores)):
        reason = (
            f"{refused} of {refused + len(scores)} halves cannot be scored: {last_reason}"
            if refused
            else "it takes too long"
        )
        return Halves(units=count, message=reason)
    return Halves(scores, count, count // 2)


def draw_halves(
    score: Callable[[Any, Any], float], cut: Cutter, among: NDArray[np.bool_], draws: int, deadline: float
) -> tuple[list[float], int, str]:
    """Scores on random halves of some units, how many halves cannot be scored, and why the last of these cannot."""
    import numpy as np

    generator, places = np.random.default_rng(0), np.flatnonzero(among)
    scores: list[float] = []
    refused, last_reason = 0, ""
    for _ in range(draws):
        drawn = np.zeros(cut.units, dtype=bool)
        drawn[generator.choice(places, len(places) // 2, replace=False)] = True
        value, reason = score_of(score, cut.of(drawn))
        if math.isfinite(value):
            scores.append(value)
        else:
            refused, last_reason = refused + 1, reason
        if time.monotonic() > deadline:
            break
    return scores, refused, last_reason


def score_of(score: Callable[[Any, Any], float], tables: tuple[Any, Any]) -> tuple[float, str]:
    """The score, or NaN and why there is none. A half may lack a class without which a metric is not defined."""
    try:
        value = float(score(*tables))
    except Exception as error:
        return math.nan, " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return value, "" if math.isfinite(value) else f"the score is {value}"


def same_score(score: float, whole: float) -> bool:
    """Whether two scores are the same, apart from the order in which numbers were added."""
    return math.isclose(score, whole, rel_tol=1e-9, abs_tol=1e-12)
