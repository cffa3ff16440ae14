"""Reports carry the published fields, in the published order, as valid JSON."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from grading.medals import Thresholds
from grading.report import CompetitionReport, GradedSubmission, GradingReport, competition_report, summarise

THRESHOLDS = Thresholds(
    gold=0.930508, silver=0.919654, bronze=0.914492, median=0.8889125, teams=2928, lower_is_better=False
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

COMPETITION_FIELDS = [
    "competition_id",
    "score",
    "gold_threshold",
    "silver_threshold",
    "bronze_threshold",
    "median_threshold",
    "any_medal",
    "gold_medal",
    "silver_medal",
    "bronze_medal",
    "above_median",
    "submission_exists",
    "valid_submission",
    "is_lower_better",
    "created_at",
    "submission_path",
]
SUMMARY_FIELDS = [
    "total_runs",
    "total_runs_with_submissions",
    "total_valid_submissions",
    "total_medals",
    "total_gold_medals",
    "total_silver_medals",
    "total_bronze_medals",
    "total_above_median",
    "competition_reports",
]


def report(
    score: float | None, exists: bool = True, competition: str = "aptos2019-blindness-detection"
) -> CompetitionReport:
    return competition_report(
        competition,
        score,
        THRESHOLDS,
        submission_path="runs/submission.csv",
        submission_exists=exists,
        created_at=MOMENT,
    )


def strict_json(text: str) -> Any:
    """Parse JSON as the standard has it: NaN and Infinity are errors."""
    return json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))


def test_a_competition_report_has_the_published_fields_in_order() -> None:
    assert list(strict_json(report(0.92).to_json())) == COMPETITION_FIELDS


def test_thresholds_of_another_leaderboard_are_said_to_be() -> None:
    fetched = replace(THRESHOLDS, leaderboard="refreshed 2026-01-02")
    found = competition_report("x", 0.92, fetched, submission_path="s.csv", submission_exists=True)
    assert list(strict_json(found.to_json())) == [*COMPETITION_FIELDS, "leaderboard"]
    assert CompetitionReport.model_validate_json(found.to_json()) == found
    assert report(0.92).leaderboard == "stored"


def test_a_summary_has_the_published_fields_in_order() -> None:
    parsed = strict_json(summarise([report(0.92)]).to_json())
    assert list(parsed) == SUMMARY_FIELDS
    assert list(parsed["competition_reports"][0]) == COMPETITION_FIELDS


def test_a_silver_medal_in_full() -> None:
    assert strict_json(report(0.9234567).to_json()) == {
        "competition_id": "aptos2019-blindness-detection",
        "score": 0.92346,
        "gold_threshold": 0.930508,
        "silver_threshold": 0.919654,
        "bronze_threshold": 0.914492,
        "median_threshold": 0.8889125,
        "any_medal": True,
        "gold_medal": False,
        "silver_medal": True,
        "bronze_medal": False,
        "above_median": True,
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "created_at": "2026-01-02T03:04:05+00:00",
        "submission_path": "runs/submission.csv",
    }


def test_medals_are_decided_on_the_score_that_is_shown() -> None:
    gold = report(0.930506)  # rounds to 0.93051, which passes the threshold of 0.930508
    assert gold.score == 0.93051
    assert (gold.gold_medal, gold.silver_medal) == (True, False)


def test_a_score_of_nan_is_a_valid_submission_without_medal_and_a_text_in_json() -> None:
    undefined = report(math.nan)
    assert math.isnan(undefined.score or 0)
    assert undefined.valid_submission
    assert not any([undefined.any_medal, undefined.above_median])
    assert strict_json(undefined.to_json())["score"] == "NaN"
    assert strict_json(summarise([undefined]).to_json())["competition_reports"][0]["score"] == "NaN"


@pytest.mark.parametrize("score", [math.inf, -math.inf])
def test_an_infinite_score_still_makes_valid_json(score: float) -> None:
    text = report(score).to_json()
    assert strict_json(text)["score"] == ("Infinity" if score > 0 else "-Infinity")
    assert CompetitionReport.model_validate_json(text).score == score, "and it is read again as what it was"


@pytest.mark.parametrize("score", [0.123455, 0.285715, 1.000005, 0.500005])
def test_ties_are_rounded_the_same_way_whatever_the_type_of_the_number(score: float) -> None:
    assert report(cast("Any", np.float64(score))).score == report(score).score


@pytest.mark.parametrize("exists", [True, False])
def test_without_a_score_a_submission_is_not_valid(exists: bool) -> None:
    rejected = report(None, exists=exists)
    assert rejected.score is None
    assert rejected.submission_exists is exists
    assert not any([rejected.valid_submission, rejected.any_medal, rejected.above_median])


def test_a_score_without_a_submission_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        report(0.5, exists=False)


def test_the_summary_counts() -> None:
    reports = [
        report(0.95),
        report(0.95),
        report(0.92),
        report(0.915),
        report(0.9),
        report(0.1),
        report(None),
        report(None, exists=False),
    ]
    summary = summarise(reports)
    assert summary.model_dump(exclude={"competition_reports"}) == {
        "total_runs": 8,
        "total_runs_with_submissions": 7,
        "total_valid_submissions": 6,
        "total_medals": 4,
        "total_gold_medals": 2,
        "total_silver_medals": 1,
        "total_bronze_medals": 1,
        "total_above_median": 5,
    }
    assert summary.competition_reports == reports


def test_the_summary_of_nothing_is_all_zeros() -> None:
    assert summarise([]).total_runs == 0


def test_reports_are_read_back_as_written() -> None:
    written = summarise([report(0.92), report(None)])
    assert GradingReport.model_validate_json(written.to_json()) == written


def test_a_published_report_with_nan_and_a_naive_time_is_read() -> None:
    published = report(0.92).to_json().replace("0.92,", "NaN,").replace("+00:00", "")
    assert math.isnan(CompetitionReport.model_validate_json(published).score or 0)


def test_created_at_defaults_to_now_in_utc() -> None:
    made = competition_report("x", None, THRESHOLDS, submission_path="", submission_exists=False).created_at
    assert made.tzinfo == UTC
    assert abs((datetime.now(UTC) - made).total_seconds()) < 60


def test_a_graded_submission_gives_a_row_of_the_table_of_grades() -> None:
    graded = GradedSubmission(
        report=report(0.92),
        outcome="valid",
        message=None,
        run_group="group",
        run_id="run",
        seed=3,
        agent="baseline",
        edition="v1",
        complexity="low",
        category="Image Classification",
    )
    row = graded.to_row()
    assert set(row) == {
        *COMPETITION_FIELDS,
        *(
            "leaderboard",
            "outcome",
            "message",
            "run_group",
            "run_id",
            "seed",
            "agent",
            "edition",
            "complexity",
            "category",
            "dense_reward",
        ),
    }
    assert row["created_at"] == "2026-01-02T03:04:05+00:00"
    assert pd.DataFrame([row])["silver_medal"].tolist() == [True]
