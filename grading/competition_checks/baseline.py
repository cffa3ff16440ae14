"""The baseline agent's submission: better than the sample, and no gold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.noise import sampling_error
from grading.competition_checks.subject import Skipped, number_of
from grading.medals import medal_for
from grading.report import SCORE_DECIMALS

if TYPE_CHECKING:
    from grading.competition_checks.measured import Measured

_ERRORS = 2.0
"""Standard errors from which the baseline agent is worse than the sample submission."""


def baseline(measured: Measured) -> list[str]:
    """The baseline agent beats the sample submission, and does not reach gold within seconds, which a leak would do."""
    subject, thresholds = measured.subject, measured.thresholds
    sample_path = subject.file("sample_submission")
    if measured.run_baseline is None:
        raise Skipped("the baseline agent is not run")
    submission, said = measured.run_baseline(subject.prepared / "public", sample_path)
    if submission is None:
        raise Skipped(f"the baseline agent left no submission: {said}")
    try:
        score, sample = subject.score(submission), subject.score(sample_path)
    except InvalidSubmission as error:
        raise Skipped(f"the baseline agent's submission is not valid: {error}") from error
    number_of(score, "the baseline agent's predictions")
    if score == sample:  # it has kept the sample submission, or predicts a constant
        raise Skipped(f"the baseline agent scores like the sample submission; it said: {said}")
    measured.figures["baseline"] = {"baseline": score, "sample": sample}
    if not math.isnan(sample) and not measured.better(score, sample):
        scores = f"the baseline agent ({score:.5g}) from the sample submission ({sample:.5g})"
        try:
            _, noise, units = sampling_error(measured, submission)
        except Skipped as reason:
            raise Skipped(f"the test set does not tell {scores}: {reason}") from reason
        if abs(score - sample) <= _ERRORS * noise:
            raise Skipped(f"{units} units in the test set do not tell {scores}: the standard error is {noise:.2g}")
        return [f"the baseline agent scores {score:.5g}, the sample submission {sample:.5g}, which is better"]
    if medal_for(round(score, SCORE_DECIMALS), thresholds) == "gold":
        remedy = "look for a leak" if thresholds.human else "ask more of gold"  # chosen by the author
        return [f"the baseline agent scores {score:.5g}, and gold requires {thresholds.gold:.5g}: {remedy}"]
    return []
