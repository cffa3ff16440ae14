"""The base class of backends, which closes open runs, and shared functions for identities and results."""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from sandbox.backend import Attachment, Capabilities, RunHandle, RunResult, RunSpec
from sandbox.definitions import Agent
from sandbox.errors import BackendClosed, BackendError
from sandbox.isolation import Isolation, Network
from sandbox.supervision import control, misplaced
from sandbox.supervision.harvest import FINAL
from sandbox.world.files import remove_tree


class SupervisingBackend(ABC):
    """Base class of the backends.

    The end of a ``with`` block, ``close`` and the normal end of Python stop the runs that are still open. SIGKILL does
    not, and the next ``start`` finds them again.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    policy: Network | None = None

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._closed = False
        self._stopping = False  # closed, and its runs stopped
        self._owner = os.getpid()
        atexit.register(self.close)  # global, because there is no other hook for the normal end of a process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @classmethod
    def conditions(cls, isolation: Isolation) -> dict[str, Any]:
        """The name of the backend, and the network policy if it has any; see ``Backend.conditions``."""
        return {"backend": cls.name} | ({"network": isolation.network} if cls.capabilities.networks else {})

    @classmethod
    def require_runnable(
        cls, agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None
    ) -> None:
        """Require a machine that the backend can use; see ``Backend.require_runnable``."""
        if not cls.is_usable():
            raise BackendError(f"this machine cannot run agents with the {cls.name} backend: choose another --backend")

    @classmethod
    def is_usable(cls) -> bool:
        """Always; see ``Backend.is_usable``."""
        return True

    @classmethod
    def is_running(cls, workdir: Path) -> bool:
        """No: a supervisor holds the lock of its slot; see ``Backend.is_running``."""
        return False

    @classmethod
    def gpus_in_use(cls) -> set[str]:
        """No GPUs: the slots tell which ones are in use; see ``Backend.gpus_in_use``."""
        return set()

    def start(self, spec: RunSpec) -> RunHandle:
        """Make sure that the run exists; see ``Backend.start``."""
        self._check(spec)
        layout = control.Layout(spec.workdir.absolute())
        try:
            layout.workdir.mkdir(parents=True, exist_ok=True)
            # Other users of this machine must not execute what an agent leaves there, such as a set-user-id file.
            layout.workdir.chmod(0o700)
            return self._start(spec, layout)
        except OSError as error:
            raise BackendError(
                f"run {spec.run_id} cannot be started in {layout.workdir}: {error.strerror or error}"
            ) from error

    def close(self) -> None:
        """Stop every run that is not known to have ended. Afterwards ``start`` raises `BackendClosed`. Thread-safe."""
        with self._mutex:
            self._closed = self._stopping = True
        atexit.unregister(self.close)
        if os.getpid() == self._owner:  # a forked copy of the orchestrator has no runs
            self._stop_open_runs()

    def leave(self) -> None:
        """Leave the runs alone when this process ends: a later process finds them. Afterwards none can be started."""
        with self._mutex:
            self._closed = True
        atexit.unregister(self.close)

    def _check_open(self) -> None:
        """Raise `BackendClosed` if the backend is closed; called with the mutex held."""
        if self._closed:
            raise BackendClosed("the backend is closed: no run can be started")

    def _handle(self, spec: RunSpec, layout: control.Layout, reference: str, attachment: Attachment) -> RunHandle:
        offset = layout.log.stat().st_size if attachment != "new" and layout.log.exists() else 0
        return RunHandle(
            run_id=spec.run_id,
            workdir=layout.workdir,
            backend=self.name,
            reference=reference,
            attachment=attachment,
            log=layout.log,
            log_offset=offset,
        )

    @abstractmethod
    def _check(self, spec: RunSpec) -> None:
        """Raise `BackendError` if the backend may not run this agent."""

    @abstractmethod
    def _start(self, spec: RunSpec, layout: control.Layout) -> RunHandle:
        """Start the run, or find it, in an existing work directory."""

    @abstractmethod
    def _stop_open_runs(self) -> None:
        """Stop the runs that are not known to have ended, all at once, as each may take its grace period."""


def read_launch_spec(spec: RunSpec, layout: control.Layout) -> control.LaunchSpec | None:
    """The record of an earlier start of the run. Raises `BackendError` if another run has the work directory."""
    earlier = control.read(layout.task, control.LaunchSpec)
    if earlier and earlier.run_id != spec.run_id:
        raise BackendError(f"{layout.workdir} belongs to run {earlier.run_id}: give every run its own work directory")
    return earlier


def identity(spec: RunSpec, *further_parts: str) -> str:
    """A hash of the run's inputs. A later start finds the run again only if its hash is the same."""
    parts = (spec.competition_id, str(spec.seed), spec.agent.name, spec.agent.fingerprint(), *further_parts)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def clear(layout: control.Layout) -> None:
    """Remove the files of an earlier start of the run."""
    for folder in (layout.control, layout.harvested, layout.home, layout.snapshots, layout.data):
        remove_tree(folder)


def result(layout: control.Layout, outcome: control.Outcome, image: str | None = None) -> RunResult:
    """The result of a run that has ended."""
    return RunResult(
        status=outcome.status,
        message=outcome.message,
        exit_code=outcome.exit_code,
        started_at=datetime.fromisoformat(outcome.started_at),
        finished_at=datetime.fromisoformat(outcome.finished_at),
        duration_seconds=outcome.duration_seconds,
        submission=layout.harvested / "submission.csv" if outcome.has_submission else None,
        logs=layout.harvested / "logs",
        code=layout.harvested / "code",
        snapshots=layout.snapshots,
        misplaced=layout.harvested / misplaced.FOLDER,
        final=layout.harvested / FINAL if (layout.harvested / FINAL).is_file() else None,
        image=image,
    )
