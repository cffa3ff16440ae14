"""A competition whose grader can be made to misbehave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from competitions.competition import Competition
from grading.workers import GradingLimits, GradingPool
from tests.grading.workers.odd import odd_competition

# A grader that does what a submission says: as bugs do, but on order.
GRADE = """
import os, signal, sys, time
kept = []
def grade(submission, answers, edition):
    assert list(answers["id"]) == [1, 2, 3]
    order = str(submission.columns[0])
    if order == "sleep": time.sleep(60)
    if order == "hoard": bytearray(1 << 40)
    if order == "die": os.abort()
    if order in ("killed", "gorge"):
        taken = b"x" * (200 << 20 if order == "gorge" else 1)
        os.kill(os.getpid(), signal.SIGKILL)
    if order == "once" and not os.path.exists(submission["once"][0]):
        open(submission["once"][0], "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if order == "large":
        kept.append(b"x" * (200 << 20))
        open(submission["large"][0], "w").write(str(os.getpid()))
    if order == "after": return float(os.path.exists("/proc/" + open(submission["after"][0]).read()))
    if order == "child":
        if os.fork() == 0:
            for _ in range(600):
                if os.path.exists(submission["child"][0]): os._exit(0)
                time.sleep(0.1)
            open(submission["child"][0], "w").write("nobody came")
            os._exit(0)
        time.sleep(90)
    if order == "print": print('{"id": 0}'); sys.stdout.flush()
    if order == "raise": raise KeyError("label")
    if order == "leave": sys.exit(3)
    if order == "spoil": answers.loc[:, "id"] = 0
    if order == "environment": raise KeyError(sorted(os.environ))
    if order == "pid": return float(os.getpid())
    return {"large": 2.0, "once": 0.75, "spoil": 1.0, "cell": 0.1, "answer": 0.25, "print": 0.5}[order]
"""


@pytest.fixture
def made(tmp_path: Path) -> tuple[Competition, Path]:
    """A competition whose grader can be made to misbehave, and its prepared dataset."""
    gold = {"gold_submission: private/test.csv": "gold_submission: private/gold.csv"}
    return odd_competition(tmp_path, GRADE, "id\n1\n2\n3\n", **gold)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def function(content: bytes | str, name: str = "submission.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return function


def grader(made: tuple[Competition, Path], **limits: Any) -> GradingPool:
    return GradingPool(*made, limits=GradingLimits(**limits))
