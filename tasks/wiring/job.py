"""The end of the job in which this process runs agents, as a batch job of a cluster has one: leaving in time.

A process that begins a job, such as a worker, says when it ends (`begin`), or a signal says that it ends soon. A file
tells it to the processes that it starts. Each hands over its runs then: it makes a last checkpoint, stops the agent,
and gives up the lease, so that another job goes on at once.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from common.errors import UserError
from common.units import duration

FILE_VARIABLE = "MLEBENCH_JOB_FILE"
"""Environment variable with the path of the file, which has the Unix time at which runs are handed over."""
LEAVE_SECONDS = 300.0
"""Time before the end of a job at which its runs are handed over: to store their last checkpoint, and for runs that
have just ended to be graded. Of a short job it is a tenth."""
SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that say that the job ends soon, as `sbatch --signal=B:USR1@600` has Slurm send."""
_LEAST_SHARE = 0.1
_POLL_SECONDS = 0.5


class HandedOver(UserError):
    """The job of this process ends before the run can: another one makes it, or goes on with it."""


def begin(seconds: float | None) -> None:
    """Hand over the runs of this process, and of those that it starts, before its job ends.

    Args:
        seconds: the time until its end; None if that is not known. A signal may still say it.
    """
    folder = tempfile.mkdtemp(prefix="mlebench-job-")  # where no other user can make or replace files
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[FILE_VARIABLE] = str(Path(folder, "leaves_at"))
    margin = 0.0 if seconds is None else min(LEAVE_SECONDS, seconds * _LEAST_SHARE)
    _write(math.inf if seconds is None else time.time() + seconds - margin)
    for number in SIGNALS:
        signal.signal(number, leave)


def leave(*_signal: object) -> None:
    """Hand over all runs of the job now. It raises nothing: signal handlers call it."""
    try:
        _write(time.time())
    except OSError as error:
        reason = error.strerror or error
        os.write(2, f"the end of the job cannot be written to {os.environ[FILE_VARIABLE]}: {reason}\n".encode())


def leaves_at() -> float | None:
    """The Unix time at which the runs of this job are handed over; None if no end of it is known."""
    try:
        when = float(Path(os.environ[FILE_VARIABLE]).read_text())
    except (KeyError, OSError, ValueError):
        return None
    return when if math.isfinite(when) else None


def is_leaving() -> bool:
    """Whether the runs of this job are being handed over."""
    when = leaves_at()
    return when is not None and time.time() >= when


def require_time(seconds: float) -> None:
    """Raise `HandedOver` if less time is left."""
    when = leaves_at()
    if when is not None and time.time() + seconds > when:
        left = round(max(when - time.time(), 0.0))
        raise HandedOver(
            f"the job leaves in {duration(left)}, and the run needs {duration(seconds)}: run the group again in "
            "another job"
        )


@contextlib.contextmanager
def handing_over(work: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `work` in a thread when the runs of this job are to be handed over.

    Yields an event that is set before that. The end of the block waits for `work`.
    """
    begun, ended = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL_SECONDS):
            if is_leaving():
                begun.set()
                work()
                return

    if FILE_VARIABLE not in os.environ:
        yield begun
        return
    thread = threading.Thread(target=watch, name="end of the job", daemon=True)
    thread.start()
    try:
        yield begun
    finally:
        ended.set()
        thread.join()


def _write(when: float) -> None:
    path = Path(os.environ[FILE_VARIABLE])
    draft = path.with_suffix(".new")
    draft.write_text(repr(when))
    draft.replace(path)
