"""The gates of `mlebench check`: whether a task that can be prepared and graded can be trusted, too.

A gate returns problems like a check. Where a good competition can have them as well, they are no failure, but notes
that a person has to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grading.competition_checks.baseline import baseline
from grading.competition_checks.chance import chance, metric
from grading.competition_checks.copies import copies
from grading.competition_checks.features import features, metadata
from grading.competition_checks.measured import Measured
from grading.competition_checks.noise import noise, scale


@dataclass(frozen=True)
class Gate:
    """A gate, and why a competition may be right that does not pass it; empty if it cannot be, which is a failure."""

    check: Callable[[Measured], list[str]]
    reason: str = ""


GATES: dict[str, Gate] = {
    "metric": Gate(metric),
    "chance": Gate(chance, "the metric or the classes may be such that chance does as well as most teams"),
    "features": Gate(
        features,
        "a strong feature may be part of the task, and ids can say all that is known, as dates of forecasts do",
    ),
    "metadata": Gate(metadata, "rows may be in the order of time, groups or sizes, which agents may use"),
    "copies": Gate(copies, "the source may repeat itself, as short texts and simulations do"),
    "noise": Gate(
        noise,
        "test sets are often too small, and groups may not matter; report several seeds and errors",
    ),
    "scale": Gate(scale, "leaderboards of few teams, or of a metric where constants do well, have such medians"),
    "baseline": Gate(baseline, "the task may be too hard or too easy for simple models"),
}
