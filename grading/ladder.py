"""The Ladder: scores on public rows that are told only when they improve on the best one by more than its noise.

An agent that is told every score can climb the public rows without better predictions. Blum and Hardt 2015 (The Ladder:
a reliable leaderboard for machine learning competitions, arXiv 1502.04585) answer with the best score so far unless a
new one is better by a step, so that an answer carries little about the rows. Their variant without a parameter takes
the standard error of the difference in loss as the step. It needs a loss for each row, which AUC, F1 and MAP do not
have, and a file that differs in one row passes it. The step here is the standard error of the score over choices of
public rows, the larger of the two files': every metric has it (`grading.workers.parts`), and it does not depend on how
similar two files are. `python -m benchmarks.ladder` measures what attackers gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grading.medals import Thresholds


@dataclass(frozen=True)
class Rung:
    """The best file so far: what was told of it, and its score and standard error, which are not told."""

    shown: float
    score: float
    standard_error: float


def least_step(thresholds: Thresholds) -> float:
    """The least step of a competition: a tenth of the distance between the gold threshold and the median."""
    return abs(thresholds.gold - thresholds.median) / 10


def climb(
    best: Rung | None, score: float, standard_error: float, *, lower_is_better: bool, least_step: float = 0.0
) -> Rung | None:
    """The rung after a new file: its own if it improves on the best by more than a step, else the best.

    The step is the larger one of the two files' standard errors. What is told is rounded to the decimal place of its
    first digit. A file without a finite score or standard error changes nothing.

    Predictions that are nearly constant have nearly no noise under log loss or RMSE. An agent could then find out
    single labels by tiny changes of such a file, unless steps have a lower bound, below which an improvement does not
    matter.

    >>> first = climb(None, 0.71234, 0.02, lower_is_better=False)
    >>> first.shown
    0.71
    >>> climb(first, 0.73, 0.02, lower_is_better=False) is first
    True
    >>> climb(first, 0.74, 0.02, lower_is_better=False).shown
    0.74
    """
    if not math.isfinite(score) or not math.isfinite(standard_error):
        return best
    step = max(standard_error, best.standard_error if best is not None else 0.0, least_step)
    rung = Rung(_rounded(score, step), score, standard_error)
    if best is None:
        return rung
    sign = -1 if lower_is_better else 1
    improves = sign * (score - best.score) > step and sign * (rung.shown - best.shown) > 0
    return rung if improves else best


def _rounded(score: float, step: float) -> float:
    return round(score, -math.floor(math.log10(step))) if step > 0 else score
