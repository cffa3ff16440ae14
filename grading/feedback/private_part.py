"""Grade files of a run with feedback by the private part: the test units on which the agent was told nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grading.grade import Grade, grade_of
from grading.report import Outcome

if TYPE_CHECKING:
    from grading.workers import GradingPool


@dataclass(frozen=True)
class PrivateGrade:
    """A grade by the private part, and the scores of the same file on other rows, which do not count."""

    grade: Grade
    public_score: float | None = None
    score_with_public_rows: float | None = None


class PrivatePart:
    """Grades files by the private part, against the same thresholds as on all rows."""

    def __init__(self, grader: GradingPool, share: float, id: str) -> None:
        """`share` and `id` are those of the run: what a file of the agent contains must not move rows."""
        self._grader, self._share, self._id = grader, share, id

    def grade(self, submission: Path, shown_path: str) -> PrivateGrade:
        """Grade a file, which need not exist. One that is valid on all rows only is invalid."""
        whole, parts = self._grader.parts(submission, self._share, self._id, seconds=0)
        if whole.outcome != "valid":
            return PrivateGrade(replace(whole, report=whole.report.model_copy(update=self._shown(shown_path))))
        public = parts.public.score if parts is not None and parts.public is not None else None
        score = whole.report.score if whole.report.score is not None and math.isfinite(whole.report.score) else None
        if parts is not None and parts.private is not None:
            grade = self._graded("valid", parts.private.score, whole.message, shown_path)
            return PrivateGrade(grade, public, score)
        reason = parts.message if parts is not None else f"the score on all rows is {whole.report.score}"
        outcome: Outcome = "invalid" if self._has_private_score else "failed"
        message = f"there is no score on the private part of the test set: {reason}"
        return PrivateGrade(self._graded(outcome, None, message, shown_path), public, score)

    def grade_all(self, submissions: Iterable[tuple[Path, str]]) -> Iterator[Grade]:
        """Yield the grades of pairs of path and reported path, in their order."""
        for submission, shown_path in submissions:
            yield self.grade(submission, shown_path).grade

    def failed(self, message: str, shown_path: str) -> PrivateGrade:
        """The grade of a file that cannot be graded, which is not the agent's fault."""
        return PrivateGrade(self._graded("failed", None, message, shown_path))

    def _graded(self, outcome: Outcome, score: float | None, message: str | None, shown_path: str) -> Grade:
        grade = grade_of(
            self._grader.competition.id,
            self._grader.thresholds,
            outcome=outcome,
            score=score,
            message=message,
            detail=None,
            shown_path=shown_path,
        )
        return replace(grade, report=grade.report.model_copy(update=self._shown(shown_path)))

    def _shown(self, path: str) -> dict[str, object]:
        return {"submission_path": path, "feedback": self._share}

    @cached_property
    def _has_private_score(self) -> bool:
        """Whether the right answers have a score on the private part, as far as they are known as a submission."""
        gold = self._grader.prepared / self._grader.competition.facts.files.gold_submission
        _, parts = self._grader.parts(gold, self._share, self._id, seconds=0)
        return parts is None or parts.private is not None
