"""Cancelling runs of this host from another process, as `mlebench cancel` does.

A cancelled selection of runs is noted as a file in the host's folder, which all processes of a user on a machine share.
Processes that were started before it look for the file before they start an agent. Agents that run are terminated.

`python -m tasks.wiring.cancelling PID` ends the agents of a process that ends at once, at a second Ctrl-C. It is needed
for containers, which would go on to the end of their time. Supervisors end their agents themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from common.errors import Cancelled
from common.settings import get_settings
from common.starting import search_path
from sandbox import backends
from sandbox.host.folder import host_folder
from sandbox.host.slots import Holder
from tasks.wiring.backends import termination_reason
from tasks.wiring.host import host_slots
from tasks.wiring.in_progress import Labels, pending_runs
from tasks.wiring.requests import Attempt, RunRequest
from tasks.wiring.storing import store_run

if TYPE_CHECKING:
    from sandbox.backend import RunHandle, RunResult
    from tasks.wiring.run import ActiveRun

_PROCESS_STARTED = time.time()  # approximately; runs that were cancelled before are run again
_EXIT_SECONDS = 30.0  # for the end of a process


@dataclass(frozen=True)
class RunSelection:
    """Runs of a group to cancel: all, those of a competition, or the one with a seed."""

    store: str
    run_group: str
    competition_id: str | None = None
    seed: int | None = None

    def has(self, competition_id: str, seed: int | str) -> bool:
        """Whether a run of the group is one of them."""
        return self.competition_id in (None, competition_id) and (self.seed is None or str(self.seed) == str(seed))

    def _has_labels(self, labels: Mapping[str, str]) -> bool:
        same_group = labels.get("store") == self.store and labels.get("group") == self.run_group
        return same_group and self.has(labels.get("competition", ""), labels.get("seed", ""))

    def running(self) -> list[Holder]:
        """The selected runs that have a slot of this host."""
        return [holder for holder in host_slots().holders() if self._has_labels(holder.claim.labels)]

    def waiting(self) -> list[Labels]:
        """The selected runs that wait for a slot of this host, or that its processes have not begun."""
        claimed = [claim.labels for claim in host_slots().waiting()]
        return [labels for labels in [*pending_runs(), *claimed] if self._has_labels(labels)]

    def note(self) -> None:
        """Note that the selected runs are cancelled."""
        folder = _folder(self.store, self.run_group)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _name(self.competition_id, self.seed)).write_text("")

    def cancel(self) -> None:
        """Prevent waiting runs from starting, and terminate the others. Returns at once."""
        self.note()
        for holder in self.running():
            terminate(holder)


def forget_cancelling(request: RunRequest) -> None:
    """Forget which runs of a group were cancelled, because it is run again."""
    shutil.rmtree(_folder(request.store, request.run_group), ignore_errors=True)


def is_cancelled(attempt: Attempt) -> bool:
    """Whether somebody has cancelled this run since this process was started."""
    folder = _folder(attempt.request.store, attempt.request.run_group)
    names = ((None, None), (attempt.competition_id, None), (attempt.competition_id, attempt.seed))
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            if (folder / _name(*name)).stat().st_mtime >= _PROCESS_STARTED:
                return True
    return False


def require_not_cancelled(attempt: Attempt) -> None:
    """Raise `Cancelled` if somebody has cancelled this run."""
    if is_cancelled(attempt):
        raise Cancelled("cancelled by a user; run the group again to make it")


def store_cancelled(run: ActiveRun, handle: RunHandle, result: RunResult, number: int) -> NoReturn:
    """End a run whose agent was stopped by a user. The submission of a cancelled run is kept.

    Raises `Cancelled`, or, if this process is being ended, the error that ends it.
    """
    if not is_cancelled(run.attempt):
        raise termination_reason(KeyboardInterrupt())
    store_run(run, handle, result, number)
    require_not_cancelled(run.attempt)
    raise termination_reason(KeyboardInterrupt())


def terminate(holder: Holder) -> None:
    """Terminate an agent. The process that waits for it stores its files; without such a process, they stay."""
    backends.load(holder.claim.backend).request_stop(Path(holder.claim.workdir), attended=holder.waited_for)


def _folder(store: str, run_group: str) -> Path:
    name = hashlib.blake2b(f"{store} {run_group}".encode(), digest_size=8).hexdigest()
    return host_folder(get_settings().host_name) / "cancelled" / name


def _name(competition_id: str | None, seed: int | None) -> str:
    return "all" if competition_id is None else competition_id if seed is None else f"{competition_id}.{seed}"


def spawn_cleanup() -> None:
    """Start a process that ends the agents of this one, which is about to end. Returns at once."""
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid())],
            # Files in the current directory must not hide our packages.
            env={**os.environ, "PYTHONPATH": search_path(), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def main(pid: int) -> int:
    """Wait for the end of a process, and end its remaining agents; returns the exit code."""
    import psutil

    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).wait(_EXIT_SECONDS)
    for holder in host_slots().holders():
        if holder.process.get("pid") == pid:
            terminate(holder)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
