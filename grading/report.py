"""Reports of graded submissions: the published JSON fields, and the additional columns of our tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
)

from grading.medals import STORED, Thresholds, above_median, medal_for

Outcome = Literal["valid", "invalid", "missing", "failed"]

SCORE_DECIMALS = 5


class _Published(BaseModel):
    """A model whose JSON has exactly the published names in the published order."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def to_json(self) -> str:
        """Indented JSON that ends with a newline. JSON has no NaN and no infinities: they are the texts "NaN",
        "Infinity" and "-Infinity". Null would turn them into no score, although -Infinity can be a gold medal.
        """
        return self.model_dump_json(indent=2) + "\n"


class CompetitionReport(_Published):
    """The report of one graded submission, as written by `mlebench grade`.

    `score` is rounded to 5 decimals, and medals are based on the rounded score. It is null without a score.
    `leaderboard` is the source of the thresholds. It is not a published field, so JSON only contains it if they are not
    those of competition.yaml. Neither is `feedback`: the share of the test units on which the agent was told scores, so
    that `score` is that on the others.
    """

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
    leaderboard: str = STORED
    feedback: float | None = None

    @model_serializer(mode="wrap")
    def _published_fields(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        content: dict[str, Any] = handler(self)
        if info.mode == "json" and self.leaderboard == STORED:
            del content["leaderboard"]
        if self.feedback is None:
            del content["feedback"]
        return content

    @field_serializer("created_at", when_used="json")
    def _iso(self, value: datetime) -> str:
        # "+00:00" instead of "Z", because datetime.fromisoformat of older Pythons reads only the former.
        return value.isoformat()


class GradingReport(_Published):
    """The summary written by `mlebench grade`: totals, then one report per submission."""

    total_runs: int
    total_runs_with_submissions: int
    total_valid_submissions: int
    total_medals: int
    total_gold_medals: int
    total_silver_medals: int
    total_bronze_medals: int
    total_above_median: int
    competition_reports: list[CompetitionReport]

    @property
    def totals(self) -> dict[str, int]:
        """The totals by their published names."""
        return self.model_dump(exclude={"competition_reports"})

    def write(self, folder: Path, part: str = "") -> Path:
        """Write it into a folder under the published name; returns its path."""
        return write_report(folder, self.to_json(), part)


def write_report(folder: Path, text: str, part: str = "") -> Path:
    """Write a report into a folder as `<time>_<part>grading_report.json`; returns its path.

    The time is the first second, from now on, of which the folder has no report: none may replace another.
    """
    moment = datetime.now(UTC)
    while True:
        path = folder / f"{moment:%Y-%m-%dT%H-%M-%S-%Z}_{part}grading_report.json"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            moment += timedelta(seconds=1)
        else:
            return path


@dataclass(frozen=True)
class GradedSubmission:
    """A report with the additional columns of our tables: the run, and the outcome of grading."""

    report: CompetitionReport
    outcome: Outcome
    message: str | None  # why there is no score; for the agent if invalid, for developers if failed
    run_group: str
    run_id: str
    seed: int
    agent: str
    edition: str
    complexity: str
    category: str
    dense_reward: float | None = None
    """See `grading.medals.dense_reward`; None if grading failed, which tells nothing about the agent."""

    def to_row(self) -> dict[str, Any]:
        """The row of the table `grades`. NaN stays NaN, and `created_at` is an ISO 8601 string."""
        own_fields = {name: value for name, value in self.__dict__.items() if name != "report"}
        return {**own_fields, **self.report.model_dump(), "created_at": self.report.created_at.isoformat()}


def competition_report(
    competition_id: str,
    score: float | None,
    thresholds: Thresholds,
    *,
    submission_path: str,
    submission_exists: bool,
    created_at: datetime | None = None,
) -> CompetitionReport:
    """Create the report of one submission.

    `score` is the unrounded score, or None if there is none (no submission, an invalid one, or a failed grading).
    Medals and "above median" are based on the rounded score, so that they can be verified from the report; for example,
    a perfect log loss of 2.2e-16 reaches a threshold of 0. `created_at` defaults to now, in UTC. Raises ValueError for
    a score without a submission.
    """
    if score is not None and not submission_exists:
        raise ValueError(f"{competition_id}: a submission that does not exist cannot have a score")
    # It is rounded as a Python float, because numpy rounds ties differently: 2.675 to 2.68 instead of 2.67.
    score = None if score is None else round(float(score), SCORE_DECIMALS)
    medal = medal_for(score, thresholds)
    return CompetitionReport(
        competition_id=competition_id,
        score=score,
        gold_threshold=thresholds.gold,
        silver_threshold=thresholds.silver,
        bronze_threshold=thresholds.bronze,
        median_threshold=thresholds.median,
        any_medal=medal is not None,
        gold_medal=medal == "gold",
        silver_medal=medal == "silver",
        bronze_medal=medal == "bronze",
        above_median=above_median(score, thresholds),
        submission_exists=submission_exists,
        valid_submission=score is not None,
        is_lower_better=thresholds.lower_is_better,
        created_at=created_at or datetime.now(UTC),
        submission_path=submission_path,
        leaderboard=thresholds.leaderboard,
    )


def summarise(reports: Iterable[CompetitionReport]) -> GradingReport:
    """The published summary of `reports`, in the given order."""
    all_reports = list(reports)

    def total(field: str) -> int:
        return sum(getattr(report, field) for report in all_reports)

    return GradingReport(
        total_runs=len(all_reports),
        total_runs_with_submissions=total("submission_exists"),
        total_valid_submissions=total("valid_submission"),
        total_medals=total("any_medal"),
        total_gold_medals=total("gold_medal"),
        total_silver_medals=total("silver_medal"),
        total_bronze_medals=total("bronze_medal"),
        total_above_median=total("above_median"),
        competition_reports=all_reports,
    )
