"""Reports of submissions, graders, and the error for submissions that are not valid."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from common import plain_json
from competitions.errors import BadCompetition
from competitions.scoring.errors import InvalidSubmission as InvalidSubmissionError
from mlebench._catalog import imported

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CompetitionReport", "Grader", "InvalidSubmissionError"]

logger = logging.getLogger(__name__)


def cannot_be_imported(source: str, error: BaseException) -> BadCompetition:
    """The error for a grader that cannot be imported, which is not the fault of a submission."""
    return BadCompetition(
        f"the grader {source} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}"
    )


@dataclass(frozen=True)
class CompetitionReport:
    """The report of one submission. `score` is rounded to 5 decimals; None if the submission has none."""

    competition_id: str
    score: float | None
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: datetime
    submission_path: str

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON types: the time in ISO 8601, NaN and infinities as texts (see `plain_json`)."""
        values: dict[str, Any] = plain_json.plain({**asdict(self), "created_at": self.created_at.isoformat()})
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompetitionReport:
        """The report that `to_dict` gave. Fields that are not known are ignored."""
        texts = ("competition_id", "submission_path", "created_at")
        known = {field.name: data[field.name] for field in fields(cls)}
        known = {name: value if name in texts else plain_json.number(value) for name, value in known.items()}
        return cls(**{**known, "created_at": datetime.fromisoformat(str(data["created_at"]))})


class Grader:
    """The grader of a competition. Can be pickled."""

    def __init__(self, name: str, grade_fn: str) -> None:
        """`grade_fn` is "module.path:function" or "file:PATH:function". Raises `ValueError` for another text."""
        self.name = name
        self.source = grade_fn
        imported(grade_fn, check_only=True)

    @property
    def grade_fn(self) -> Callable[[pd.DataFrame, Any], float]:
        """The function: submission and answers to the unrounded score. It raises `InvalidSubmissionError`.

        For competitions of the catalog, any other error that it raises says that the submission cannot be scored.

        Raises:
            BadCompetition: it cannot be imported.
        """
        try:
            function: Callable[[pd.DataFrame, Any], float] = imported(self.source)
        except (Exception, SystemExit) as error:
            raise cannot_be_imported(self.source, error) from error
        return function

    def __call__(self, submission: pd.DataFrame, answers: Any) -> float | None:
        """The score of a submission, rounded to 5 decimals; None, with a line in the log, if it cannot be graded.

        Raises:
            BadCompetition: the grader cannot be imported.
        """
        from grading.report import SCORE_DECIMALS

        grade_fn = self.grade_fn
        try:
            return round(float(grade_fn(submission, answers)), SCORE_DECIMALS)
        except BadCompetition:
            raise
        except ImportError as error:
            raise cannot_be_imported(self.source, error) from error
        except InvalidSubmissionError as error:
            logger.warning("Invalid submission: %s", error)
        except (Exception, SystemExit):  # the published grader does not raise either
            logger.exception("The submission cannot be graded by %s", self.source)
        return None

    def is_lower_better(self, leaderboard: pd.DataFrame) -> bool:
        """Whether lower scores are better: the first score of the leaderboard is below its last.

        Teams without a score do not count. Raises `ValueError` if no team has one.
        """
        scores = leaderboard["score"].dropna()
        if scores.empty:
            raise ValueError("the leaderboard has no scores")
        return bool(scores.iloc[0] < scores.iloc[-1])

    def rank_score(self, score: float | None, leaderboard: pd.DataFrame) -> dict[str, Any]:
        """The thresholds of a leaderboard, and what `score` earns; a missing score earns nothing.

        Args:
            score: the rounded score.
            leaderboard: a row for each team, best first, with the column `score`. Teams without one do not count.
        """
        from grading.medals import above_median, medal_for, thresholds_from_leaderboard

        scores = [float(each) for each in leaderboard["score"].dropna()]
        limits = thresholds_from_leaderboard(scores, self.is_lower_better(leaderboard))
        medal = medal_for(score, limits)
        return {
            "gold_threshold": limits.gold,
            "silver_threshold": limits.silver,
            "bronze_threshold": limits.bronze,
            "median_threshold": limits.median,
            "gold_medal": medal == "gold",
            "silver_medal": medal == "silver",
            "bronze_medal": medal == "bronze",
            "above_median": above_median(score, limits),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grader:
        """The grader with the `name` and the `grade_fn` of a `config.yaml`."""
        return cls(str(data["name"]), str(data["grade_fn"]))

    def __repr__(self) -> str:
        return f"Grader(name={self.name!r}, grade_fn={self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grader) and (self.name, self.source) == (other.name, other.source)

    def __hash__(self) -> int:
        return hash((self.name, self.source))
