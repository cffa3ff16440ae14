"""Grading by the published functions, and how that agrees with our command."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions.errors import BadCompetition
from flows.cli import main
from mlebench.data import generate_checksums, get_checksum, get_leaderboard, is_dataset_prepared
from mlebench.grade import aggregate_reports, grade_csv, grade_jsonl, validate_submission
from mlebench.grade_helpers import CompetitionReport, Grader, InvalidSubmissionError
from mlebench.registry import Competition, Registry
from tests.stores import Store, put_dataset


@pytest.fixture
def competition(store: Store) -> Competition:
    put_dataset(store, "digits")
    return Registry(store.local()).get_competition("digits")


def test_the_report_is_that_of_our_command(
    competition: Competition, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for submission in (competition.sample_submission, competition.gold_submission, competition.public_dir / "no.csv"):
        main(["grade-sample", str(submission), "digits", "--store", store.root])
        expected = json.loads(capsys.readouterr().out)
        report = grade_csv(submission, competition).to_dict()
        different = {name for name in report if report[name] != expected[name]}
        assert different <= {"created_at", "submission_path"}


def test_a_report_survives_json(competition: Competition) -> None:
    report = grade_csv(competition.sample_submission, competition)
    assert isinstance(report.created_at, datetime)
    assert CompetitionReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


@pytest.mark.parametrize(
    ("content", "name", "says", "exists"),
    [
        ("id,answer\n1,2\n", "s.csv", "columns", True),
        ("", "s.csv", "", True),
        ("id,digit\n", "s.txt", "ends in .csv", False),
        (None, "s.csv", "there is no submission", False),
    ],
)
def test_nothing_is_raised_because_of_a_submission(
    competition: Competition, tmp_path: Path, content: str | None, name: str, says: str, exists: bool
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    report = grade_csv(tmp_path / name, competition)
    assert (report.score, report.valid_submission, report.submission_exists) == (None, False, exists)
    valid, message = validate_submission(tmp_path / name, competition)
    assert not valid
    assert message.startswith("Submission invalid!")
    assert says in message


def test_a_valid_submission_is_said_to_be(competition: Competition) -> None:
    assert validate_submission(competition.sample_submission, competition) == (True, "Submission is valid.")


def test_a_score_that_is_no_number_is_valid_as_published_and_is_a_text_in_json(
    competition: Competition, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("def grade(submission, answers):\n    return float('nan')\n")
    own = replace(competition, grader=Grader("own", f"file:{tmp_path / 'own.py'}:grade"))
    report = grade_csv(competition.answers, own)
    assert (report.valid_submission, report.any_medal, report.above_median) == (True, False, False)
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert content["score"] == "NaN"
    assert math.isnan(CompetitionReport.from_dict(content).score or 0)


def test_without_answers_is_an_error(tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition("digits")
    for call in (grade_csv, validate_submission):
        with pytest.raises(ValueError, match="not prepared"):
            call(tmp_path / "s.csv", competition)


def test_only_the_private_part_is_needed(competition: Competition, tmp_path: Path) -> None:
    shutil.copytree(competition.private_dir, tmp_path / "digits" / "prepared" / "private")
    alone = Registry(tmp_path).get_competition("digits")
    assert is_dataset_prepared(alone, grading_only=True)
    assert not is_dataset_prepared(alone)
    assert grade_csv(competition.gold_submission, alone).score == 1.0


def test_new_answers_are_used(competition: Competition, tmp_path: Path) -> None:
    private = shutil.copytree(competition.private_dir, tmp_path / "digits" / "prepared" / "private")
    alone = Registry(tmp_path).get_competition("digits")
    assert grade_csv(competition.gold_submission, alone).gold_medal
    answers = pd.read_csv(private / "test.csv")
    (private / "test.csv").unlink()
    answers.assign(label=(answers["label"] + 1) % 10).to_csv(private / "test.csv", index=False)
    assert grade_csv(competition.gold_submission, alone).score == 0.0


def test_answers_of_the_caller_are_used(competition: Competition, tmp_path: Path) -> None:
    pd.read_csv(competition.answers).assign(label=0).to_csv(tmp_path / "mine.csv", index=False)
    changed = replace(competition, answers=tmp_path / "mine.csv")
    assert grade_csv(tmp_path / "mine.csv", changed).score == 1.0
    assert grade_csv(tmp_path / "mine.csv", competition).score != 1.0


def test_a_leaderboard_of_the_caller_decides_medals(competition: Competition, tmp_path: Path) -> None:
    pd.DataFrame({"score": [1.0, 0.9, 0.01, 0.005]}).to_csv(tmp_path / "board.csv", index=False)
    changed = replace(competition, leaderboard=tmp_path / "board.csv")
    assert not grade_csv(competition.sample_submission, competition).above_median
    assert get_leaderboard(changed)["score"].tolist() == [1.0, 0.9, 0.01, 0.005]
    assert grade_csv(competition.sample_submission, changed).gold_threshold == 1.0


def test_json_lines_are_graded(competition: Competition, tmp_path: Path) -> None:
    lines = [{"competition_id": "digits", "submission_path": str(path)} for path in (competition.answers, "no.csv")]
    (tmp_path / "s.jsonl").write_text("# a comment\n" + "\n\n".join(json.dumps(line) for line in lines))
    registry = Registry(competition.private_dir.parents[4])
    grade_jsonl(tmp_path / "s.jsonl", tmp_path / "out", registry)
    grade_jsonl(tmp_path / "s.jsonl", tmp_path / "out", registry)
    path, second = sorted((tmp_path / "out").glob("*_grading_report.json"))
    assert path.name != second.name, "two reports in one second are two files"
    content = json.loads(path.read_text())
    assert (content["total_runs"], content["total_gold_medals"], content["total_runs_with_submissions"]) == (2, 1, 1)


@pytest.mark.parametrize("line", ['"digits"', '{"competition_id": "digits"}', '{"submission_path": "s.csv"}'])
def test_a_line_of_another_form_is_named_before_anything_is_graded(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.jsonl").write_text(f'# one\n{{"competition_id": "digits", "submission_path": "s.csv"}}\n{line}\n')
    with pytest.raises(ValueError, match="line 3 is not of the form"):
        grade_jsonl(tmp_path / "s.jsonl", tmp_path / "out", Registry(tmp_path))


def test_totals_count_reports(competition: Competition) -> None:
    reports = [grade_csv(path, competition) for path in (competition.answers, competition.sample_submission)]
    totals = aggregate_reports([*reports, reports[0]])
    assert (totals["total_runs"], totals["total_medals"], totals["total_valid_submissions"]) == (3, 2, 3)
    assert totals["competition_reports"][0] == reports[0].to_dict()


class TestGrader:
    def test_it_scores_frames(self, competition: Competition) -> None:
        answers = pd.read_csv(competition.answers)
        half = answers.assign(label=[*answers["label"][:180], *[99] * (len(answers) - 180)])
        assert competition.grader(answers, answers) == 1.0
        assert competition.grader(half, answers) == round(180 / len(answers), 5)

    def test_what_is_invalid_is_raised_by_the_function_and_no_score_of_the_grader(
        self, competition: Competition
    ) -> None:
        answers = pd.read_csv(competition.answers)
        with pytest.raises(InvalidSubmissionError):
            competition.grader.grade_fn(answers[:-1], answers)
        assert competition.grader(answers[:-1], answers) is None

    def test_a_function_may_be_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "own.py").write_text("def grade(submission, answers):\n    return len(submission) / 3\n")
        grader = Grader.from_dict({"name": "own", "grade_fn": f"file:{tmp_path / 'own.py'}:grade"})
        assert grader(pd.DataFrame({"a": [1]}), None) == 0.33333

    def test_a_function_of_the_caller_grades_files(self, competition: Competition, tmp_path: Path) -> None:
        (tmp_path / "own.py").write_text(
            "from mlebench.grade_helpers import InvalidSubmissionError\n"
            "def grade(submission, answers):\n"
            "    if 'label' not in submission: raise InvalidSubmissionError('no label')\n"
            "    return 1 / (len(submission) - len(answers) + 0.5)\n"
        )
        own = replace(competition, grader=Grader("own", f"file:{tmp_path / 'own.py'}:grade"))
        assert grade_csv(competition.answers, own).score == 2.0
        (tmp_path / "s.csv").write_text("id\n1\n")
        assert validate_submission(tmp_path / "s.csv", own) == (False, "Submission invalid! no label")

    def test_one_that_ends_the_process_gives_no_score(self, competition: Competition, tmp_path: Path) -> None:
        (tmp_path / "own.py").write_text("def grade(submission, answers):\n    raise SystemExit(1)\n")
        own = replace(competition, grader=Grader("own", f"file:{tmp_path / 'own.py'}:grade"))
        assert own.grader(pd.DataFrame(), None) is None
        assert not grade_csv(competition.answers, own).valid_submission

    @pytest.mark.parametrize(
        "content", ["def grade(:\n", "import no_such_module\n", "def grade(*_):\n    import no_such_module\n", ""]
    )
    def test_one_that_cannot_be_imported_is_an_error(
        self, competition: Competition, tmp_path: Path, content: str
    ) -> None:
        (tmp_path / "own.py").write_text(content)
        own = replace(competition, grader=Grader("own", f"file:{tmp_path / 'own.py'}:grade"))
        with pytest.raises(BadCompetition, match=r"own\.py:grade cannot be imported"):
            own.grader(pd.DataFrame(), None)
        for call in (grade_csv, validate_submission):
            with pytest.raises(BadCompetition, match=r"own\.py:grade cannot be imported"):
                call(competition.answers, own)

    def test_teams_without_a_score_do_not_decide_the_direction(self) -> None:
        grader = Grader("any", "a:b")
        assert grader.is_lower_better(pd.DataFrame({"score": [None, 0.1, 0.2, None]}))
        with pytest.raises(ValueError, match="no scores"):
            grader.is_lower_better(pd.DataFrame({"score": [None]}))

    @pytest.mark.parametrize("name", ["grade", "", "module:"])
    def test_a_text_that_names_no_function_is_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="names no function"):
            Grader("any", name)

    @pytest.mark.parametrize(
        ("scores", "score", "medal"),
        [([0.1, 0.2, 0.3, 0.4], 0.1, "gold"), ([0.4, 0.3, 0.2, 0.1], 0.05, None), ([3.0, 2.0, 1.0], None, None)],
    )
    def test_scores_are_ranked(self, scores: list[float], score: float | None, medal: str | None) -> None:
        ranks: dict[str, Any] = Grader("any", "a:b").rank_score(score, pd.DataFrame({"score": scores}))
        assert {name for name in ("gold", "silver", "bronze") if ranks[f"{name}_medal"]} == (
            {medal} if medal else set()
        )


def test_checksums_are_md5s_by_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_text("1\n")
    (tmp_path / "y.csv").write_text("2\n")
    (tmp_path / "z.png").write_text("3\n")
    md5s = {"a": {"x.csv": get_checksum(tmp_path / "a" / "x.csv")}, "y.csv": "26ab0db90d72e28ad0ba1e22ee510510"}
    assert generate_checksums(tmp_path) == md5s
    assert generate_checksums(tmp_path, exts=[".png"], exclude=[tmp_path / "z.png"]) == {}
