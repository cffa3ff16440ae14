"""The grade of one submission: its report, its outcome, and the reason for a missing score."""

from __future__ import annotations

from dataclasses import dataclass

from grading.medals import Thresholds
from grading.report import CompetitionReport, Outcome, competition_report


@dataclass(frozen=True)
class Grade:
    """The grade of a submission. `message` says why there is no score; `detail` is the traceback of a grader's bug."""

    report: CompetitionReport
    outcome: Outcome
    message: str | None = None
    detail: str | None = None


def grade_of(
    competition_id: str,
    thresholds: Thresholds,
    *,
    outcome: Outcome,
    score: float | None,
    message: str | None,
    detail: str | None,
    shown_path: str,
) -> Grade:
    """Create a grade with its report. `score` only counts if the outcome is "valid"."""
    report = competition_report(
        competition_id,
        score if outcome == "valid" else None,
        thresholds,
        submission_path=shown_path,
        submission_exists=outcome != "missing",
    )
    return Grade(report, outcome, message, detail)
