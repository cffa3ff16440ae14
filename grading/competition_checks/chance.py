"""What predictions score that know nothing of their rows: constant, shuffled and random ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from grading.competition_checks.subject import Skipped
from grading.medals import medal_for
from grading.report import SCORE_DECIMALS

if TYPE_CHECKING:
    from grading.competition_checks.measured import Measured


def metric(measured: Measured) -> list[str]:
    """The metric tells right answers from constant, shuffled and random ones."""
    right, others = measured.scores_of_chance
    if measured.subject.declares("gold-not-optimal"):
        raise Skipped("competition.yaml says that right answers do not score best")
    return [
        f"{name} predictions score {score:.5g}, the right ones {right:.5g}"
        for name, score in others.items()
        if not math.isnan(score) and not measured.better(right, score)
    ]


def chance(measured: Measured) -> list[str]:
    """Constant, shuffled and random predictions earn no medal."""
    right, others = measured.scores_of_chance
    measured.figures["chance"] = {"right": right, **others}
    medals = {name: medal_for(round(score, SCORE_DECIMALS), measured.thresholds) for name, score in others.items()}
    return [
        f"{name} predictions score {others[name]:.5g}, which earns {medal}"
        for name, medal in medals.items()
        if medal is not None and math.isfinite(others[name])
    ]
