"""Grading one submission file: exists, is of a sane size, is valid, scores; each outcome with its cause."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grading.errors import InvalidSubmission
from grading.medals import Thresholds
from grading.report import CompetitionReport, Outcome, competition_report

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition

# A submission is no larger than this many times the largest of sample and gold submission, plus a margin: more is not
# another way of writing numbers but an attack or an accident, and would only fill the memory.
_TIMES = 50
_MARGIN = 16 << 20


@dataclass(frozen=True)
class Grade:
    """What became of a submission: `message` says why there is no score, `detail` is the traceback of our own bugs."""

    report: CompetitionReport
    outcome: Outcome
    message: str | None = None
    detail: str | None = None


class Grader:
    """Grades any number of submissions of one competition; the answers are read once."""

    def __init__(self, competition: Competition, prepared: Path, edition: Edition = "v1") -> None:
        self.competition, self.prepared, self.edition = competition, Path(prepared), edition
        self.thresholds = Thresholds.of(competition.facts)
        self._answers: Any = None

    def grade(self, submission: Path, shown_path: str | None = None) -> Grade:
        """Grade the CSV `submission`; never raises for what it contains. `shown_path` is what the report says."""
        if not submission.is_file():
            return self._result(None, "missing", submission, shown_path, f"there is no submission at {submission}")
        try:
            self._check_size(submission)
            if self._answers is None:
                self._answers = self.competition.answers(self.prepared)
            score = self.competition.score(submission, self._answers, self.edition)
        except InvalidSubmission as error:
            return self._result(None, "invalid", submission, shown_path, str(error))
        except Exception as error:  # a bug of ours is reported as such, and never booked as the agent's failure
            message = f"grading failed: {type(error).__name__}: {error}".splitlines()[0]
            return self._result(None, "failed", submission, shown_path, message, traceback.format_exc())
        return self._result(score, "valid", submission, shown_path)

    def _check_size(self, submission: Path) -> None:
        files = self.competition.facts.files
        known = (self.prepared / files.sample_submission, self.prepared / files.gold_submission)
        limit = _MARGIN + _TIMES * max((path.stat().st_size for path in known if path.is_file()), default=0)
        size = submission.stat().st_size
        if size > limit:
            raise InvalidSubmission(f"the file has {size:,} bytes; a submission here has at most {limit:,}")

    def _result(
        self,
        score: float | None,
        outcome: Outcome,
        submission: Path,
        shown_path: str | None,
        message: str | None = None,
        detail: str | None = None,
    ) -> Grade:
        report = competition_report(
            self.competition.id,
            score,
            self.thresholds,
            submission_path=shown_path or str(submission),
            submission_exists=outcome != "missing",
        )
        return Grade(report, outcome, message, detail)
