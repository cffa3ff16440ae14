"""The check behind the validation service: the competition's grader in a process of its own, started on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from competitions import registry
from grading.workers import GradingPool
from sandbox.validation.checker import OnDemandChecker, Verdict
from tasks.wiring.services import grader_verdict
from tests.prepared import Prepared, PreparedCompetitions
from tests.published_folders import copy_forks
from tests.waiting import until


@pytest.fixture
def opened() -> list[str]:
    """What the check opened and closed."""
    return []


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A competition of the demo, prepared."""
    return PreparedCompetitions(tmp_path_factory.mktemp("digits"))["digits"]


@pytest.fixture
def check(digits: Prepared, opened: list[str]) -> Iterator[OnDemandChecker]:
    @contextmanager
    def grader() -> Iterator[Callable[[Path], Verdict]]:
        opened.append("opened")
        with GradingPool(digits.competition, digits.path) as grader:
            yield partial(grader_verdict, grader)
        opened.append("closed")

    check = OnDemandChecker(grader, idle_seconds=0.5)
    yield check
    check.close()


def test_it_starts_when_asked_and_ends_when_idle(check: OnDemandChecker, opened: list[str], digits: Prepared) -> None:
    assert opened == []
    sample = digits.path / digits.competition.facts.files.sample_submission
    assert [check(sample), check(sample)] == [Verdict("valid")] * 2
    assert opened == ["opened"]
    until(lambda: opened == ["opened", "closed"])
    assert check(sample) == Verdict("valid")
    assert opened == ["opened", "closed", "opened"]


def test_what_is_wrong_is_said_in_the_graders_words(check: OnDemandChecker, tmp_path: Path) -> None:
    file = tmp_path / "submission.csv"
    file.write_text("a,b\n1,2\n")
    verdict = check(file)
    assert verdict.outcome == "invalid"
    assert "lacks" in str(verdict.message)
    assert str(tmp_path) not in str(verdict.message)
    file.write_bytes(b"\x00\xff" * 1000)
    assert check(file).outcome == "invalid"


@pytest.mark.parametrize(
    "line", ["raise KeyError(answers['load'][0])", "import os; raise OSError(str(answers['load'][0]), os.getcwd())"]
)
def test_the_text_of_an_exception_of_a_fork_s_grader_is_for_operators(
    tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be an answer, or name a path of the host."""
    folder = copy_forks(tmp_path / "forks") / "hourly-load"
    (folder / "grade.py").write_text(f"def grade(submission, answers):\n    {line}\n")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "answers.csv").write_text("id,load,scale\n1,-78.69,1\n")
    with GradingPool(registry.load(folder), tmp_path) as grader:
        verdict = grader_verdict(grader, tmp_path / "private" / "answers.csv")
    kind = "KeyError" if "KeyError" in line else "OSError"
    assert verdict == Verdict("invalid", f"the grader cannot score this submission ({kind})")
    assert "-78.69" in caplog.text


def test_closing_does_not_wait_for_a_long_grading(tmp_path: Path) -> None:
    entered, release, closed, told = (threading.Event() for _ in range(4))

    def slow(_submission: Path) -> Verdict:
        entered.set()
        assert release.wait(120)
        raise OSError("nobody hears")

    @contextmanager
    def grader() -> Iterator[Callable[[Path], Verdict]]:
        yield slow
        closed.set()

    check = OnDemandChecker(grader, on_close=told.set)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(check, tmp_path / "submission.csv")
        assert entered.wait(120)
        check.close()
        assert told.is_set()
        assert not asked.done()
        assert not closed.is_set()
        release.set()
        assert isinstance(asked.exception(), OSError)
    assert closed.wait(120)


def test_a_grader_that_cannot_be_had_is_our_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @contextmanager
    def grader() -> Iterator[Callable[[Path], Verdict]]:
        raise OSError("the store with the answers is away")
        yield

    check = OnDemandChecker(grader)
    with pytest.raises(OSError, match="away"):
        check(tmp_path / "submission.csv")
    check.close()
