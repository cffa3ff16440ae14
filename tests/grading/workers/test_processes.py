"""Processes of grading: each submission has its own, they are restarted, and none is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from competitions.competition import Competition
from grading.workers import GraderCache, GradingLimits, GradingPool
from tests.grading.workers.conftest import GRADE, grader
from tests.grading.workers.odd import odd_competition
from tests.prepared import PreparedCompetitions
from tests.waiting import until


class TestProcesses:
    @pytest.mark.parametrize("workers", [1, 3])
    def test_grades_come_in_order_whatever_happens_between(
        self, made: tuple[Competition, Path], write: Callable[..., Path], workers: int
    ) -> None:
        orders = ["answer", "die", "print", "raise", None, "sleep", "answer", "answer", "hoard", "print"]
        paths = [write(f"{order}\n1\n", f"{number}.csv") if order else None for number, order in enumerate(orders)]
        limits = GradingLimits(grade_seconds=1.5)
        with GradingPool(*made, limits=limits, workers=workers) as subject:
            grades = list(subject.grade_all(paths))
        expected = {"answer": 0.25, "print": 0.5}
        assert [grade.report.score for grade in grades] == [expected.get(str(order)) for order in orders]

    def test_each_submission_has_its_own_process_and_answers_are_read_once(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        path = write("pid\n1\n")
        with grader(made) as subject:
            pids = {subject.grade(path).report.score for _ in range(5)}
            (made[1] / made[0].facts.files.answers).unlink()
            subject.grade(write("die\n1\n", "die.csv"))
            fresh = subject.grade(path).report.score
        assert len(pids) == 5
        assert fresh not in pids | {None}, "a new worker with the answers that were read before"

    def test_a_killed_server_is_started_again(self, made: tuple[Competition, Path], write: Callable[..., Path]) -> None:
        path = write("answer\n1\n")
        with grader(made) as subject:
            subject.grade(path)
            assert subject._process is not None
            os.kill(subject._process.pid, signal.SIGKILL)
            assert subject.grade(path).outcome == "valid"

    def test_nothing_is_left_running(self, made: tuple[Competition, Path], write: Callable[..., Path]) -> None:
        with grader(made) as subject:
            subject.grade(write("answer\n1\n"))
            assert subject._process is not None
            server = psutil.Process(subject._process.pid)
            assert not server.children()
        assert not psutil.wait_procs([server], timeout=120)[1]

    def test_the_memory_of_a_large_one_is_free_before_the_next_is_scored(
        self, made: tuple[Competition, Path], write: Callable[..., Path], tmp_path: Path
    ) -> None:
        paths = [write(f"{order}\n{tmp_path / 'pid'}\n", f"{order}.csv") for order in ("large", "after")]
        with grader(made) as subject:
            assert [grade.report.score for grade in subject.grade_all(paths)] == [2.0, 0.0]

    def test_a_limit_on_processes_only_makes_it_slower(self, tmp_path: Path, write: Callable[..., Path]) -> None:
        limited = (
            "import os; fork = os.fork\n"
            "def limited():\n"
            "    children = open(f'/proc/self/task/{os.getpid()}/children').read().split()\n"
            "    if children: raise BlockingIOError('no more processes')\n"
            "    return fork()\n"
            "os.fork = limited\n"
            "def grade(submission, answers, edition): return 0.25\n"
        )
        paths = [write("answer\n1\n", f"{number}.csv") for number in range(4)]
        with GradingPool(*odd_competition(tmp_path / "limited", limited, "id\n1\n")) as subject:
            assert [grade.report.score for grade in subject.grade_all(paths)] == [0.25] * 4

    def test_a_child_of_a_worker_delays_nothing(
        self, made: tuple[Competition, Path], write: Callable[..., Path], tmp_path: Path
    ) -> None:
        ends = tmp_path / "ends"
        with GradingPool(*made, limits=GradingLimits(grade_seconds=1.0)) as subject:
            assert subject.grade(write(f"child\n{ends}\n")).outcome == "invalid"
        assert not ends.exists()
        ends.touch()

    @pytest.mark.parametrize("workers", [1, 3])
    def test_few_submissions_are_drawn_ahead(self, made: tuple[Competition, Path], workers: int) -> None:
        drawn = []

        def missing() -> Iterator[None]:
            for number in range(50):
                drawn.append(number)
                yield None

        with GradingPool(*made, workers=workers) as subject:
            ahead = [len(drawn) - number for number, _ in enumerate(subject.grade_all(missing()))]
        assert len(drawn) == 50
        assert max(ahead) <= 4 * workers

    def test_leaving_early_leaves_a_usable_grader(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        paths = [write("answer\n1\n", f"{number}.csv") for number in range(6)]
        with grader(made) as subject:
            for grade in subject.grade_all(paths):
                assert grade.outcome == "valid"
                break
            assert [grade.outcome for grade in subject.grade_all(paths)] == ["valid"] * 6

    def test_cached_graders_are_kept_and_replaced_with_the_code(
        self, made: tuple[Competition, Path], write: Callable[..., Path]
    ) -> None:
        path = write("pid\n1\n")
        with GraderCache() as graders:
            with graders.grader(*made, "v1") as subject:
                subject.grade(path)
                first = subject._process
            with graders.grader(*made, "v1") as subject:
                subject.grade(path)
                assert subject._process is first
            (made[0].folder / "grade.py").write_text(GRADE.replace("0.25", "0.75"))
            with graders.grader(*made, "v1") as subject:
                assert subject.grade(write("answer\n1\n", "answer.csv")).report.score == 0.75


def test_a_real_competition_gives_the_same_score_as_without_isolation(prepared: PreparedCompetitions) -> None:
    subject = prepared["diabetes"]
    sample = subject.path / subject.competition.facts.files.sample_submission
    with GradingPool(subject.competition, subject.path) as pool:
        (grade,) = pool.grade_all([(sample, "shown")])
    assert grade.report.score == round(subject.competition.score(sample, subject.answers), 5)
    assert grade.report.submission_path == "shown"


def test_when_whoever_asked_is_killed_its_processes_end(
    made: tuple[Competition, Path], write: Callable[..., Path]
) -> None:
    competition, data = made
    code = (
        "import sys; from pathlib import Path; from competitions.competition import Competition;"
        "from grading.workers import GradingPool;"
        "GradingPool(Competition.load(Path(sys.argv[1])), Path(sys.argv[2])).grade(Path(sys.argv[3]))"
    )
    arguments = [str(competition.folder), str(data), str(write("sleep\n1\n"))]
    asking = subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=Path(__file__).parents[3])
    children = partial(psutil.Process(asking.pid).children, recursive=True)
    try:
        started = until(lambda: found if len(found := children()) >= 2 else None, 60, what="the start of a worker")
    finally:
        asking.kill()
        asking.wait()
    assert not psutil.wait_procs(started, timeout=120)[1]
