"""The examination `split-noise` of `mlebench examine`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from common.units import counted
from flows.commands.answers import answer, say
from flows.commands.external import Examined
from flows.commands.options import option
from flows.commands.quantities import POSITIVE_DURATION
from flows.commands.types import whole


@dataclass(frozen=True)
class SplitNoiseOptions:
    """How much is measured."""

    TITLE: ClassVar[str] = "Split noise"
    halves: Annotated[
        int,
        option(
            "--halves",
            type=whole(20, 10_000),
            show_default=True,
            help="Random halves of the test set to score for each run.",
        ),
    ] = 200
    seconds: Annotated[
        float,
        option(
            "--seconds",
            type=POSITIVE_DURATION,
            metavar="TIME",
            show_default=True,
            help="Stop scoring further halves of a run after this time.",
        ),
    ] = 20.0


def examine_split_noise(examined: Examined, options: SplitNoiseOptions) -> int:
    """Measure how much scores and medals depend on which rows are in the test set; returns the exit code.

    Prints the standard error of each score and the probability of a medal on another test set of the same size.
    """
    from common.cleaning import clean
    from grading.words import number as in_digits
    from tasks.split_noise import measure_split_noise

    measured_count = total = 0
    for row in measure_split_noise(examined.store, examined.run_group, options.halves, options.seconds):
        total += 1
        result = row.get("message") or ""
        if not math.isnan(row.get("standard_error", math.nan)):
            measured_count += 1
            chance = f"a medal with probability {row['any_medal_probability']:.2f}"
            score = f"{in_digits(row['score'])} ± {in_digits(row['standard_error'])}"
            result = f"{score}, {chance}, {counted(row['units'], 'unit')}"
        answer({"kind": "split-noise", **row})
        say(clean(f"{row['competition_id']}/{row['seed']} {row['edition']}: {result}"))
    say(f"{measured_count} of {total} scores have a standard error")
    return 0
