"""What says whether a submission is valid: the competition's own grader in a worker process, its score dropped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from grading.workers import IsolatedGrader

logger = logging.getLogger(__name__)

IDLE_SECONDS = 300.0
"""After which the worker, which holds the answers in memory, is ended; the next question starts it again."""

CLOSE_SECONDS = 0.5


@dataclass(frozen=True)
class Verdict:
    """The answer to one question; there is no room for a score in it."""

    outcome: Literal["valid", "invalid", "failed"]
    message: str | None = None
    """Why it is invalid: the grader's line for the agent. Never the text of any other exception."""


class Check(Protocol):
    """Judges files, one at a time."""

    def __call__(self, submission: Path) -> Verdict:
        """The verdict on a file; blocks, and does not raise for what the file contains."""
        ...

    def close(self) -> None:
        """End what it keeps running."""
        ...


class GraderCheck:
    """A check by the competition's grader, started when first asked and ended when it has been idle."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[IsolatedGrader]], idle_seconds: float = IDLE_SECONDS
    ) -> None:
        """Prepare a check.

        Args:
            opened: gives the grader; entered at the first question, for it may have to fetch the answers.
            idle_seconds: how long it is kept without a question.
        """
        self._opened = opened
        self._idle_seconds = idle_seconds
        self._held = ExitStack()
        self._grader: IsolatedGrader | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __call__(self, submission: Path) -> Verdict:
        """The verdict on a file. What went wrong on our side is logged here, and nowhere an agent could read it."""
        with self._lock:
            self._cancel_timer()
            try:
                if self._grader is None:
                    self._grader = self._held.enter_context(self._opened())
                grade = self._grader.grade(submission)
            finally:
                self._timer = threading.Timer(self._idle_seconds, self.close)
                self._timer.daemon = True
                self._timer.start()
        if grade.outcome == "valid":
            return Verdict("valid")
        if grade.outcome == "invalid":
            return Verdict("invalid", grade.message)
        logger.error("a submission could not be validated: %s\n%s", grade.message, grade.detail or "")
        return Verdict("failed")

    def close(self) -> None:
        """End the worker, as soon as it is done with a question under way, which is not waited for.

        The next question starts it again.
        """
        if self._lock.acquire(timeout=CLOSE_SECONDS):
            try:
                self._end()
            finally:
                self._lock.release()
        else:
            threading.Thread(target=self._end_later, daemon=True).start()

    def _end_later(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._cancel_timer()
        self._grader = None
        self._held.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
