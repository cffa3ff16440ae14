"""Checkers of the validation service: created for the first submission, closed after they have been idle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from common import plain_json
from sandbox.limits import ValidationLimits

IDLE_SECONDS = 300.0
"""Idle time after which a checker is closed, as it may hold the answers in memory."""
CLOSE_SECONDS = 0.5


@dataclass(frozen=True)
class Verdict:
    """The result of checking a submission. It has no field for a score."""

    outcome: Literal["valid", "invalid", "failed", "refused"]
    message: str | None = None
    """The reason why it is invalid, as one line for the agent; never the text of an unexpected exception."""

    @property
    def told(self) -> dict[str, Any]:
        """What the agent is told of a valid file besides that it is valid."""
        return {}


@dataclass(frozen=True)
class Scored(Verdict):
    """The result of scoring files."""

    score: float | None = None
    """The score of valid files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", plain_json.number(self.score))  # it may come from another process

    @property
    def told(self) -> dict[str, Any]:
        """The score."""
        return {"score": plain_json.plain(self.score)}


@dataclass(frozen=True)
class PublicScore(Verdict):
    """The answer to a request for a public score. It has what the agent is told, and no other score."""

    submission: int | None = None
    """The number of a valid file."""
    best: float | None = None
    """The best public score so far."""
    improved: bool = False
    calls_left: int = 0

    @property
    def told(self) -> dict[str, Any]:
        """All of it."""
        return {name: getattr(self, name) for name in ("submission", "best", "improved", "calls_left")}


class SubmissionChecker(Protocol):
    """Checks submissions, one at a time."""

    def __call__(self, *files: Any) -> Verdict:
        """Check the files of a request and wait for the result. Their contents never raise an exception."""
        ...

    def close(self) -> None:
        """End its processes and release its resources."""
        ...


@dataclass(frozen=True)
class Check:
    """What answers an endpoint of the service (`sandbox.validation.endpoints`), and the limits on its use."""

    checker: SubmissionChecker
    limits: ValidationLimits = field(default_factory=ValidationLimits)


class OnDemandChecker:
    """A checker that is opened for the first submission and closed after some idle time, or by `close`."""

    def __init__(
        self,
        open_checker: Callable[[], AbstractContextManager[Callable[..., Verdict]]],
        idle_seconds: float = IDLE_SECONDS,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Configure the checker.

        Args:
            open_checker: returns the checker as a context manager. It may take long, e.g. to download the answers.
            idle_seconds: how long the checker is kept open without a submission.
            on_close: called by `close` first, also while a submission is being checked.
        """
        self._on_close = on_close
        self._open_checker = open_checker
        self._idle_seconds = idle_seconds
        self._stack = ExitStack()
        self._checker: Callable[..., Verdict] | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __call__(self, *files: Path) -> Verdict:
        """Check files, after opening the checker if necessary."""
        with self._lock:
            self._cancel_timer()
            try:
                if self._checker is None:
                    self._checker = self._stack.enter_context(self._open_checker())
                return self._checker(*files)
            finally:
                self._timer = threading.Timer(self._idle_seconds, self._release)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Close the checker, in the background if a submission is being checked. The next submission opens it again."""
        self._on_close()
        self._release()

    def _release(self) -> None:
        if self._lock.acquire(timeout=CLOSE_SECONDS):
            try:
                self._close()
            finally:
                self._lock.release()
        else:
            threading.Thread(target=self._close_later, daemon=True).start()

    def _close_later(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._cancel_timer()
        self._checker = None
        self._stack.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
