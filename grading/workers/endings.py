"""All outcomes and messages of grading: the meaning of every way in which a scoring or a worker can end.

A submission that cannot be read or scored within the limits is invalid: it counts as the agent's failure, because an
agent could otherwise void a bad seed with a submission that is too expensive to score. An error of the grader is a
failure of grading, which does not count against the agent. If the kernel kills a worker because the machine has too
little memory, the memory that the right answers take decides which of the two it is.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common import plain_json
from common.errors import line_of
from grading.report import Outcome
from grading.workers.limits import Bounds

Phase = Literal["reading", "truth", "predictions", "grading"]
"""What a worker does: it reads a submission, or a truth and predictions, and then grades."""
_FILES: dict[Phase, str] = {"reading": "the file", "truth": "TRUTH", "predictions": "PREDICTIONS"}
TOO_EXPENSIVE = "too expensive to score"
"""Beginning of the message about a submission that cannot be scored within the limits."""
_UNREADABLE = "cannot be read as a table within"
_SERVER_ENDED = "grading failed: the process with the answers ended"
_WORKER_ENDED = "grading failed: the grader's process ended by"
_PARTS_TOO_SLOW, _PARTS_TOO_LARGE = "it takes too long", "it needs too much memory"


@dataclass(frozen=True)
class Verdict:
    """The result of one submission. `message` says why there is no score; `detail`, for operators, is a traceback."""

    outcome: Outcome
    score: float | None = None
    message: str | None = None
    detail: str | None = None
    further: dict[str, Any] | None = None
    """The fields of `Halves` or `Parts`, if they were asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", plain_json.number(self.score))  # it may come from another process


def missing(path: Path | None) -> Verdict:
    """The verdict without a submission, by the rule of `submission_exists`."""
    if path is None:
        return Verdict("missing", message="there is no submission")
    try:
        there = os.path.lexists(path)
    except (OSError, ValueError):  # a name that is too long, or with a NUL
        there = False
    reason = "; what is there is not a file whose name ends in .csv" if there else ""
    return Verdict("missing", message=f"there is no submission at {path}{reason}")


def too_large(bounds: Bounds, phase: Phase = "reading") -> Verdict:
    """The verdict on a file that cannot be read within a worker's memory limit."""
    message = f"{_FILES[phase]} {_UNREADABLE} {_size(bounds.memory_bytes)} of memory"
    return Verdict("invalid", message=message)


def too_slow(bounds: Bounds, phase: Phase = "reading") -> Verdict:
    """The verdict on a file that takes too long to read."""
    message = f"{_FILES[phase]} {_UNREADABLE} {bounds.read_seconds:g} seconds"
    return Verdict("invalid", message=message)


def out_of_memory(bounds: Bounds) -> Verdict:
    """The verdict if scoring ran out of memory."""
    return Verdict("invalid", message=f"{TOO_EXPENSIVE}: it needs more than {_size(bounds.memory_bytes)} of memory")


def out_of_time(bounds: Bounds) -> Verdict:
    """The verdict if scoring took too long."""
    return Verdict("invalid", message=f"{TOO_EXPENSIVE}: it takes more than {bounds.grade_seconds:g} seconds")


def grader_error(error: BaseException, detail: str | None = None) -> Verdict:
    """The verdict if the grader, or reading the answers, raised `error`."""
    message = " ".join(f"grading failed: {type(error).__name__}: {error}".split())[:500]
    line = line_of(error)
    return Verdict("failed", message=f"{message} ({line})" if line else message, detail=detail)


def unreadable(error: OSError) -> Verdict:
    """The verdict if the file system denied access to the file."""
    return Verdict("failed", message=f"grading failed: {error}")


def was_killed(overdue: bool, status: int) -> bool:
    """Whether the worker was killed from outside, usually by the kernel when memory runs out."""
    return not overdue and os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def killed(peak: int, right: int | None) -> Verdict:
    """The verdict on a submission whose worker was killed twice, the second time when it was alone.

    A worker that asks for more than its limit is refused memory and not killed, so the machine had less than the limit.
    That is the agent's failure only if the submission takes clearly more than the right answers do. An agent can
    therefore neither be blamed for the machine, nor void a seed with a submission that is too large for it.

    Args:
        peak: the most memory that the submission took, in bytes.
        right: what the right answers took; None if they were killed, too.
    """
    if right is None:
        return Verdict(
            "failed", message=f"{_TOO_LITTLE_MEMORY}, even for the right answers; grade again where there is more"
        )
    if peak <= _PEAK_FACTOR * right + _PEAK_MARGIN_BYTES:
        return Verdict(
            "failed", message=f"{_TOO_LITTLE_MEMORY}, for a submission that takes no more than the right answers"
        )
    message = f"{TOO_EXPENSIVE}: the machine ran out of memory at {_size(peak)}, the right answers take {_size(right)}"
    return Verdict("invalid", message=message)


_TOO_LITTLE_MEMORY = "grading failed: the machine has too little memory"
_PEAK_FACTOR, _PEAK_MARGIN_BYTES = 2, 64 << 20


def worker_ended(phase: Phase, overdue: bool, status: int, bounds: Bounds) -> Verdict:
    """The verdict if the worker ended with the wait status `status`; `overdue` if it was killed after its deadline."""
    if phase != "grading":
        return too_slow(bounds, phase) if overdue else too_large(bounds, phase)
    code = os.waitstatus_to_exitcode(status)
    if overdue or code == -signal.SIGXCPU:
        return out_of_time(bounds)
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return Verdict("failed", message=f"{_WORKER_ENDED} {cause}")


def further_ended(overdue: bool) -> str:
    """Why there are no scores on parts of the test set, if the worker ended while it computed them."""
    return _PARTS_TOO_SLOW if overdue else _PARTS_TOO_LARGE


def server_ended(output: str) -> Verdict:
    """The verdict if the process with the answers ended repeatedly; `output` is the end of its output."""
    return Verdict("failed", message=_SERVER_ENDED, detail=output or _SERVER_ENDED)


_OF_THE_MACHINE = (
    TOO_EXPENSIVE,
    _UNREADABLE,
    _SERVER_ENDED,
    _WORKER_ENDED,
    _TOO_LITTLE_MEMORY,
    _PARTS_TOO_SLOW,
    _PARTS_TOO_LARGE,
    "MemoryError",
    "[Errno",
)


def of_the_machine(message: str | None) -> bool:
    """Whether a message is about limits, or about a process that ended: it may be another one when it is tried again.

    >>> of_the_machine("the file cannot be read as a table within 120 seconds"), of_the_machine("a column is missing")
    (True, False)
    """
    return any(text in str(message) for text in _OF_THE_MACHINE)


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 29 else f"{count / (1 << 20):.0f} MiB"
