"""The check behind the validation service: the competition's grader in a process of its own, started when needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grading.grade import Grade
from grading.workers import IsolatedGrader
from sandbox.validation.check import GraderCheck, Verdict
from tests.prepared import Prepared, PreparedCompetitions


@pytest.fixture
def opened() -> list[str]:
    """What the check opened and closed."""
    return []


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A competition of the demo, prepared."""
    return PreparedCompetitions(tmp_path_factory.mktemp("digits"))["digits"]


@pytest.fixture
def check(digits: Prepared, opened: list[str]) -> Iterator[GraderCheck]:
    @contextmanager
    def grader() -> Iterator[IsolatedGrader]:
        opened.append("opened")
        with IsolatedGrader(digits.competition, digits.path) as grader:
            yield grader
        opened.append("closed")

    check = GraderCheck(grader, idle_seconds=0.5)
    yield check
    check.close()


def test_it_starts_when_asked_and_ends_when_idle(check: GraderCheck, opened: list[str], digits: Prepared) -> None:
    assert opened == []
    sample = digits.path / digits.competition.facts.files.sample_submission
    assert [check(sample), check(sample)] == [Verdict("valid")] * 2
    assert opened == ["opened"]
    time.sleep(1.0)
    assert opened == ["opened", "closed"]
    assert check(sample) == Verdict("valid")
    assert opened == ["opened", "closed", "opened"]


def test_what_is_wrong_is_said_in_the_graders_words(check: GraderCheck, tmp_path: Path) -> None:
    file = tmp_path / "submission.csv"
    file.write_text("a,b\n1,2\n")
    verdict = check(file)
    assert verdict.outcome == "invalid"
    assert "lacks" in str(verdict.message)
    assert str(tmp_path) not in str(verdict.message)
    file.write_bytes(b"\x00\xff" * 1000)
    assert check(file).outcome == "invalid"


def test_closing_does_not_wait_for_a_long_grading(tmp_path: Path) -> None:
    class Slow:
        def grade(self, _submission: Path) -> Grade:
            time.sleep(3)
            raise OSError("nobody hears")

    closed = threading.Event()

    @contextmanager
    def grader() -> Iterator[Any]:
        yield Slow()
        closed.set()

    check = GraderCheck(grader)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(check, tmp_path / "submission.csv")
        time.sleep(0.2)
        began = time.monotonic()
        check.close()
        assert time.monotonic() - began < 2
        assert not closed.is_set()
        assert isinstance(asked.exception(), OSError)
    assert closed.wait(5)


def test_a_grader_that_cannot_be_had_is_our_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @contextmanager
    def grader() -> Iterator[IsolatedGrader]:
        raise OSError("the store with the answers is away")
        yield

    check = GraderCheck(grader)
    with pytest.raises(OSError, match="away"):
        check(tmp_path / "submission.csv")
    check.close()
