"""Why a run ended, in both backends: status, message, and the outcome that is written."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from common import trees
from common.errors import one_line
from common.units import duration, size
from sandbox.errors import BackendError
from sandbox.limits import Limits
from sandbox.supervision import control
from sandbox.supervision.harvest import harvest
from sandbox.supervision.moving import FULL
from sandbox.world.files import REMOVE_SECONDS, remove_tree

if TYPE_CHECKING:  # the supervisor stays small: no pydantic at run time
    from sandbox.backend import Status

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
FULL_SECONDS = 3600.0
"""Time to wait for space on a full disk to write how a run ended."""


@dataclass(frozen=True)
class EndReason:
    """The reason why a run did not complete."""

    status: Status
    message: str


CANCELLED = EndReason("cancelled", "stopped by the user")
SHUT_DOWN = EndReason("lost", "the machine was shut down, or somebody else ended the run's supervisor")


def lost(why: str) -> EndReason:
    """The run was ended by its machine or container engine, or by somebody else than its orchestrator."""
    return EndReason("lost", why)


def time_limit(limits: Limits) -> EndReason:
    """The run took longer than its time limit."""
    return EndReason("timeout", f"the time limit of {duration(limits.time_limit_seconds)} was reached")


def disk_limit(limits: Limits) -> EndReason:
    """The run used more disk space than its limit, or failed because the disk limit was reached."""
    return EndReason("disk", f"more on disk than the limit of {size(limits.disk_bytes or 0)}")


def disk_floor(left: int) -> EndReason:
    """The file system of the run is nearly full, and the run is one of those that may have filled it."""
    return EndReason("disk", f"the disk of the machine is nearly full ({size(left)} left)")


def files_floor(left: int, own: int) -> EndReason:
    """The machine's table of open files is nearly full, and the run is one of those that may have filled it."""
    return EndReason("processes", f"the machine can open only {left} more files, and the run has {own} open")


def memory_limit(limits: Limits) -> EndReason:
    """The run's processes together used more memory than its limit."""
    return EndReason("memory", f"more memory than the limit of {size(limits.memory_bytes or 0)}")


def memory_floor(left: int) -> EndReason:
    """The machine has hardly any memory left, and the run is one of those that may have taken it."""
    return EndReason("memory", f"the machine has only {size(left)} of memory left")


def process_limit(limits: Limits) -> EndReason:
    """The run had more processes at once than its limit."""
    return EndReason("processes", f"more than {limits.processes} processes at once")


def crash(exit_code: int) -> EndReason:
    """The agent ended by itself with an exit code other than 0.

    A negative code is the signal that killed the start script; 128 and more is how shells and container engines report
    the signal that killed a program.
    """
    if exit_code < 0:
        hint = " (the machine may have run out of memory)" if -exit_code == signal.SIGKILL else ""
        return EndReason("crashed", f"the agent was ended by {_name(-exit_code) or f'signal {-exit_code}'}{hint}")
    name = f" ({_name(exit_code - 128)})" if _name(exit_code - 128) else ""
    return EndReason("crashed", f"the agent ended with exit code {exit_code}{name}; the end of agent.log may say why")


def _name(number: int) -> str | None:
    return signal.Signals(number).name if number in set(signal.Signals) else None


@dataclass(frozen=True)
class End:
    """How a run ended, as far as the backend knows before the agent's files are harvested."""

    reason: EndReason | None
    """None if the agent completed."""
    exit_code: int | None
    """None if the run was ended from outside."""
    started_at: datetime
    finished_at: datetime
    seconds: float
    notes: tuple[str, ...] = ()
    """Further messages for the user."""


def conclude(layout: control.Layout, limits: Limits, end: End) -> control.Outcome:
    """Harvest the agent's files, write the outcome, and remove the agent's home; its processes must have ended.

    Waits while the disk is full. An interrupted call can be repeated.

    Raises:
        OSError: the disk is still full after an hour, or the work directory cannot be written to.
    """
    try:
        has_submission, notes = _harvested(layout, limits)
    except OSError:  # the disk is full, perhaps of scratch files
        _remove_scratch(layout)
        has_submission, notes = _with_space(lambda: _harvested(layout, limits))
    _remove_scratch(layout)  # the outcome needs space, too
    if not has_submission and any(layout.snapshots.glob("*.csv")):
        notes.append("earlier versions of it are kept in snapshots/ of the run")
    messages = [*([end.reason.message] if end.reason else []), *notes, *end.notes]
    outcome = control.Outcome(
        status=end.reason.status if end.reason else "completed",
        message="; ".join(messages) or None,
        exit_code=end.exit_code,
        started_at=end.started_at.isoformat(),
        finished_at=end.finished_at.isoformat(),
        duration_seconds=end.seconds,
        has_submission=has_submission,
    )
    _with_space(lambda: control.write(layout.outcome, outcome))
    with contextlib.suppress(BackendError):  # perhaps files of another user; the next start reports them
        remove_tree(layout.home)
    return outcome


def _remove_scratch(layout: control.Layout) -> None:
    with contextlib.suppress(OSError), trees.opened_folder(layout.home) as home:
        trees.remove("tmp", home, time.monotonic() + REMOVE_SECONDS)


def _harvested(layout: control.Layout, limits: Limits) -> tuple[bool, list[str]]:
    """Harvest the agent's files. Only a full disk makes it fail: a run must have an outcome, whatever its files are."""
    try:
        return harvest(layout.home, layout.log, layout.harvested, limits)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        logger.exception("the files of %s could not all be harvested", layout.workdir)
        has_submission = (layout.harvested / "submission.csv").is_file()
        return has_submission, [f"its files could not all be collected ({one_line(error)})"]


def _with_space(write: Callable[[], Result]) -> Result:
    """Call `write` again while the disk is full, because other programs may have filled it and may free it again."""
    deadline = time.monotonic() + FULL_SECONDS
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno not in FULL or time.monotonic() > deadline:
                raise
        time.sleep(1.0)
