"""Hostile submissions against real worker processes: each costs one clear rejection, and the next is graded as ever."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from competitions.competition import Competition
from grading.workers import GradingLimits, GradingPool
from tests.grading.workers.conftest import grader

MEMORY = 64 << 20


def zip_bomb() -> bytes:
    """64 MB of nothing in a zip archive of 64 KB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("submission.csv", b"\0" * (64 << 20))
    return buffer.getvalue()


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
            (lambda path: path.open("wb").truncate(1 << 40), "1,099,511,627,776 bytes"),
        ],
        ids=["link to a file", "a terabyte of nothing"],
    )
    def test_what_is_no_ordinary_file_is_refused_unread(
        self, made: tuple[Competition, Path], tmp_path: Path, make: Callable[[Path], object], says: str
    ) -> None:
        make(tmp_path / "s.csv")
        with grader(made) as subject:
            grade = subject.grade(tmp_path / "s.csv")
            assert subject._process is None, "no process was needed"
        assert (grade.outcome, grade.report.submission_exists) == ("invalid", True)
        assert says in str(grade.message)

    @pytest.mark.parametrize(
        "make",
        [
            os.mkfifo,
            lambda path: path.symlink_to("/nowhere"),
            lambda path: path.symlink_to("/dev/zero"),
            Path.mkdir,
        ],
        ids=["pipe", "broken link", "link to a device", "folder"],
    )
    def test_what_is_no_file_is_no_submission(
        self, made: tuple[Competition, Path], tmp_path: Path, make: Callable[[Path], object]
    ) -> None:
        make(tmp_path / "s.csv")
        self.require_missing(made, tmp_path / "s.csv")

    @pytest.mark.parametrize("name", ["submission.txt", "submission", "submission.csv.gz"])
    def test_a_file_of_another_kind_is_no_submission(
        self, made: tuple[Competition, Path], write: Callable[..., Path], name: str
    ) -> None:
        self.require_missing(made, write("answer\n1\n", name))

    def require_missing(self, made: tuple[Competition, Path], path: Path) -> None:
        with grader(made) as subject:
            grade = subject.grade(path)
            assert subject._process is None, "no process was needed"
        assert (grade.outcome, grade.report.submission_exists) == ("missing", False)
        assert "not a file whose name ends in .csv" in str(grade.message)

    def test_the_name_may_end_in_capital_letters(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        with grader(made) as subject:
            assert subject.grade(write("answer\n1\n", "SUBMISSION.CSV")).outcome != "missing"

    @pytest.mark.parametrize("path", ["nowhere.csv", "nul\0.csv", "x" * 5000, None])
    def test_no_file_is_missing(self, made: tuple[Competition, Path], path: str | None) -> None:
        with grader(made) as subject:
            grade = subject.grade(Path(path) if path else None)
        assert (grade.outcome, grade.report.submission_exists) == ("missing", False)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"," * 8_000_000, "8,000,001 columns"),
            (b"a\n" + b"1," * 2_000_000, "2,000,001 columns"),
            ("answer\né\n".encode("latin-1"), "UTF-8"),
            (gzip.compress(b"\0" * (64 << 20)), "cannot be read as a CSV|UTF-8"),
            (zip_bomb(), "cannot be read as a CSV|UTF-8"),
            (b'answer\n"' + b"x" * 1000, "cannot be read as a CSV"),
            (b"answer\n1\n1,2,3\n", "cannot be read as a CSV"),
        ],
        ids=["wide header", "wide first row", "Latin-1", "gzip bomb", "zip bomb", "open quote", "ragged"],
    )
    def test_content_that_is_no_table_is_invalid(
        self, made: tuple[Competition, Path], write: Callable[..., Path], content: bytes | str, says: str
    ) -> None:
        with grader(made) as subject:
            grade = subject.grade(write(content))
            assert (grade.outcome, grade.detail) == ("invalid", None)
            assert any(each in str(grade.message) for each in says.split("|"))
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    def test_a_table_that_does_not_fit_in_memory_is_invalid(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        rows = "answer,b,c\n" + "1.5,text,2\n" * 1_200_000
        with grader(made, memory_bytes=12 << 20) as subject:
            grade = subject.grade(write(rows))
            expected = "the file cannot be read as a table within 12 MiB of memory"
            assert (grade.outcome, grade.message) == ("invalid", expected)
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    def test_an_endless_line_is_one_column(self, made: tuple[Competition, Path], write: Callable[..., Path]) -> None:
        with grader(made, memory_bytes=MEMORY) as subject:
            assert subject.grade(write(b"a" * (14 << 20))).outcome in ("invalid", "failed")
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    def test_a_file_that_takes_too_long_to_read_is_killed(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        rows = "answer,b,c\n" + "1.5,text,2\n" * 1_400_000
        with grader(made, read_seconds=0.1) as subject:
            grade = subject.grade(write(rows))
            assert (grade.outcome, grade.message) == (
                "invalid",
                "the file cannot be read as a table within 0.1 seconds",
            )


class TestTooExpensive:
    @pytest.mark.parametrize(
        ("order", "says"),
        [("sleep", "it takes more than 1 seconds"), ("hoard", "it needs more than 64 MiB of memory")],
    )
    def test_what_cannot_be_scored_within_the_limits_is_the_agents_failure(
        self, made: tuple[Competition, Path], write: Callable[..., Path], order: str, says: str
    ) -> None:
        """Else an agent could void a bad seed at will."""
        with grader(made, memory_bytes=MEMORY, grade_seconds=1.0) as subject:
            grade = subject.grade(write(f"{order}\n1\n"))
            assert (grade.outcome, grade.report.valid_submission, grade.report.submission_exists) == (
                "invalid",
                False,
                True,
            )
            assert grade.message == f"too expensive to score: {says}"
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    @pytest.mark.parametrize(
        ("order", "right", "outcome", "says"),
        [
            ("gorge", "answer", "invalid", "too expensive to score: the machine ran out of memory at 2"),
            ("killed", "answer", "failed", "for a submission that takes no more than the right answers"),
            ("gorge", "killed", "failed", "even for the right answers"),
            ("gorge", None, "invalid", "the right answers take 0 MiB"),
        ],
    )
    def test_a_worker_that_the_kernel_kills_is_compared_with_the_right_answers(
        self, made: tuple[Competition, Path], write: Callable[..., Path], order: str, right: str | None, outcome: str,
        says: str,
    ) -> None:  # fmt: skip
        """The agent is not blamed for a machine with too little memory, and cannot void a seed with it either."""
        gold = made[1] / made[0].facts.files.gold_submission
        gold.unlink(missing_ok=True)
        if right:
            gold.parent.mkdir(parents=True, exist_ok=True)
            gold.write_text(f"{right}\n1\n")
        paths = [write(f"{each}\n1\n", f"{place}.csv") for place, each in enumerate(("answer", order, "answer"))]
        with GradingPool(*made, workers=2) as subject:
            grades = list(subject.grade_all(paths))
            assert [each.outcome for each in grades] == ["valid", outcome, "valid"]
            assert says in str(grades[1].message)
            assert subject.halves(paths[1])[0].outcome == outcome

    def test_a_machine_that_was_short_of_memory_for_a_moment_costs_nothing(
        self, made: tuple[Competition, Path], write: Callable[..., Path], tmp_path: Path
    ) -> None:
        with grader(made) as subject:
            grade = subject.grade(write(f"once\n{tmp_path / 'noted'}\n"))
        assert (grade.outcome, grade.report.score) == ("valid", 0.75)

    def test_a_row_has_a_bound(self, made: tuple[Competition, Path], write: Callable[..., Path]) -> None:
        with grader(made) as subject:
            assert subject.grade(write("cell\n" + "x" * 1_000_000 + "\n")).report.score == 0.1
            grade = subject.grade(write("cell\n" + "x" * 3_000_000 + "\n"))
        assert grade.outcome == "invalid"
        assert "a cell of column 'cell' has 3,000,000 characters" in str(grade.message)


class TestBugsOfOurs:
    @pytest.mark.parametrize(
        ("order", "says"),
        [("die", "the grader's process ended by SIGABRT"), ("raise", "KeyError: 'label'")],
    )
    def test_are_failures_and_never_booked_as_the_agents(
        self, made: tuple[Competition, Path], write: Callable[..., Path], order: str, says: str
    ) -> None:
        with grader(made, memory_bytes=MEMORY, grade_seconds=1.0) as subject:
            grade = subject.grade(write(f"{order}\n1\n"))
            assert (grade.outcome, grade.report.valid_submission) == ("failed", False)
            assert says in str(grade.message)
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    def test_a_grader_that_changes_the_answers_changes_no_other_score(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        with grader(made) as subject:
            assert subject.grade(write("spoil\n1\n")).report.score == 1.0
            assert subject.grade(write("answer\n1\n")).report.score == 0.25

    def test_the_grading_process_knows_nothing_of_the_operators_environment(
        self, made: tuple[Competition, Path], write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MLEBENCH_LEDGER_KEY"):
            monkeypatch.setenv(name, "a secret")
        with grader(made) as subject:
            message = str(subject.grade(write("environment\n1\n")).message)
        assert "PYTHONPATH" in message
        assert not any(part in message for part in ("KEY", "AWS", "MLEBENCH"))

    def test_the_traceback_is_kept(self, made: tuple[Competition, Path], write: Callable[..., Path]) -> None:
        with grader(made) as subject:
            assert 'raise KeyError("label")' in str(subject.grade(write("raise\n1\n")).detail)

    def test_what_a_grader_prints_does_not_mix_with_replies(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        with grader(made) as subject:
            assert subject.grade(write("print\n1\n")).report.score == 0.5

    def test_answers_that_cannot_be_read_fail_every_submission(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        competition, prepared = made
        (prepared / competition.facts.files.answers).unlink()
        with GradingPool(competition, prepared) as subject:
            grades = list(subject.grade_all([write("answer\n1\n"), Path("nowhere")]))
        assert [grade.outcome for grade in grades] == ["failed", "missing"]
        assert "FileNotFoundError" in str(grades[0].message)
        assert "Traceback" in str(grades[0].detail)


@pytest.mark.parametrize("limits", [{"memory_bytes": 0}, {"read_seconds": -1.0}, {"size_bytes": 0}])
def test_limits_under_which_nothing_can_be_graded_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        GradingLimits(**limits)
