"""Grade submissions, check whether they are valid, and add up reports."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from common import plain_json
from competitions.errors import BadCompetition
from grading.report import SCORE_DECIMALS, write_report
from grading.workers.endings import missing
from grading.workers.limits import submission_exists
from mlebench._catalog import competition as in_catalog
from mlebench._catalog import name_of
from mlebench.data import get_leaderboard, is_dataset_prepared
from mlebench.grade_helpers import CompetitionReport, InvalidSubmissionError, cannot_be_imported
from mlebench.registry import Competition, Registry, registry

if TYPE_CHECKING:
    from grading.workers import GradingPool

logger = logging.getLogger(__name__)


def grade_jsonl(path_to_submissions: Path, output_dir: Path, registry: Registry = registry) -> None:
    """Grade each submission of a file with JSON lines, and write the reports and their totals.

    A line has `competition_id` and `submission_path`. Empty lines, and those that begin with # or //, are skipped. The
    file is `<output_dir>/<time>_grading_report.json`.

    Raises:
        ValueError: a line is of another form; it names the line, and nothing is graded.
        FileNotFoundError: a competition is unknown.
    """
    from mlebench.utils import numbered_jsonl

    lines = list(numbered_jsonl(path_to_submissions, skip_commented_out_lines=True))
    for number, line in lines:
        if (
            not isinstance(line, dict)
            or "submission_path" not in line
            or not isinstance(line.get("competition_id"), str)
        ):
            raise ValueError(
                f"{path_to_submissions}, line {number} is not of the form "
                '{"competition_id": "ID", "submission_path": "PATH"}'
            )
    subjects = {line["competition_id"]: registry.get_competition(line["competition_id"]) for _, line in lines}
    reports = [grade_csv(Path(str(line["submission_path"])), subjects[line["competition_id"]]) for _, line in lines]
    totals = aggregate_reports(reports)
    for name, total in totals.items():
        if name != "competition_reports":
            logger.info("%s: %s", name, total)
    output_dir = Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    target = write_report(output_dir, plain_json.dumps(totals, indent=2))
    logger.info("Saved the report to %s", target)


def grade_csv(path_to_submission: Path, competition: Competition) -> CompetitionReport:
    """Grade a submission. It is read and scored in a process of its own, with limits on memory and time.

    The answers stay in memory for further submissions of the competition. A submission that is missing, that is not
    valid, or on which the grader fails, has no score. Nothing is raised because of its content.

    Raises:
        ValueError: the private part of the dataset is not prepared.
        BadCompetition: the grader cannot be imported, or the answers cannot be read.
    """
    _require_prepared(competition)
    result = _graded(Path(path_to_submission), competition)
    score = result.score
    ranks = competition.grader.rank_score(score, leaderboard := get_leaderboard(competition))
    return CompetitionReport(
        competition_id=competition.id,
        score=score,
        any_medal=ranks["gold_medal"] or ranks["silver_medal"] or ranks["bronze_medal"],
        submission_exists=result.exists,
        valid_submission=score is not None,
        is_lower_better=competition.grader.is_lower_better(leaderboard),
        created_at=datetime.now(UTC),
        submission_path=str(path_to_submission),
        **ranks,
    )


def validate_submission(submission: Path, competition: Competition) -> tuple[bool, str]:
    """Whether a submission is valid, and why not. Raises the same errors as `grade_csv`."""
    _require_prepared(competition)
    result = _graded(Path(submission), competition)
    if result.score is None:
        return False, f"Submission invalid! {result.message}"
    return True, "Submission is valid."


def aggregate_reports(competition_reports: Sequence[CompetitionReport]) -> dict[str, Any]:
    """The totals over reports, and the reports as dictionaries."""

    def total(field: str) -> int:
        return sum(bool(getattr(report, field)) for report in competition_reports)

    return {
        "total_runs": len(competition_reports),
        "total_runs_with_submissions": total("submission_exists"),
        "total_valid_submissions": total("valid_submission"),
        "total_medals": total("any_medal"),
        "total_gold_medals": total("gold_medal"),
        "total_silver_medals": total("silver_medal"),
        "total_bronze_medals": total("bronze_medal"),
        "total_above_median": total("above_median"),
        "competition_reports": [report.to_dict() for report in competition_reports],
    }


def _require_prepared(competition: Competition) -> None:
    if not is_dataset_prepared(competition, grading_only=True):
        raise ValueError(
            f"Dataset for competition {competition.id!r} is not prepared: there are no answers at "
            f"{competition.answers}; run `mlebench prepare -c {competition.id} --data-dir DIRECTORY`"
        )


@dataclass(frozen=True)
class _Result:
    """The rounded score, and why there is none."""

    exists: bool
    score: float | None = None
    message: str = ""


def _graded(submission: Path, competition: Competition) -> _Result:
    """Grade a submission in the grading processes of this process; if the grader is the caller's own, here."""
    if not submission_exists(submission):
        return _Result(exists=False, message=missing(submission).message or "")
    if competition.grader.source != name_of(competition.id, "grade"):
        return _graded_here(submission, competition)
    with _pool(competition) as pool:
        grade = pool.grade(submission)
        if pool.broken:
            raise BadCompetition(f"{competition.id}: {pool.broken.message}")
    if grade.outcome == "failed":
        logger.error("The submission %s cannot be graded: %s", submission, grade.detail or grade.message)
    return _Result(True, grade.report.score, grade.message or "")


@contextmanager
def _pool(competition: Competition) -> Iterator[GradingPool]:
    """Processes with the answers of a competition. They stay open for the next submission."""
    from tasks.wiring.grades import process_graders

    ours, answers = in_catalog(competition.id), competition.answers
    prepared = competition.private_dir.parent
    if answers == prepared / ours.facts.files.answers:
        status = answers.stat()
        version = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        with process_graders().grader(ours, prepared, "v1", version) as pool:
            yield pool
        return
    from grading.workers import GradingPool

    with TemporaryDirectory(prefix="mlebench-grade-") as folder:  # answers of the caller, from another place
        expected = Path(folder) / ours.facts.files.answers
        expected.parent.mkdir(parents=True)
        expected.symlink_to(os.path.realpath(answers))
        with GradingPool(ours, Path(folder)) as pool:
            yield pool


def _graded_here(submission: Path, competition: Competition) -> _Result:
    from competitions.scoring.reading import read_submission
    from mlebench.utils import load_answers

    grade_fn = competition.grader.grade_fn
    try:
        table = read_submission(submission)
        score = float(grade_fn(table, load_answers(competition.answers)))
    except InvalidSubmissionError as error:
        return _Result(True, message=str(error))
    except ImportError as error:
        raise cannot_be_imported(competition.grader.source, error) from error
    except (Exception, SystemExit) as error:  # whatever a submission makes the grader do
        logger.exception("The submission %s cannot be graded", submission)
        return _Result(True, message=f"grading failed: {error}")
    return _Result(True, round(score, SCORE_DECIMALS))
