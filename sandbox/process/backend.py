"""The process backend: agents as processes of this machine, each beside a supervisor that outlives the orchestrator.

It limits and cleans up, but does not isolate: an agent can read what its user can read. Hence for trusted agents only.
Needs no Docker and no root, and works on Linux and, with weaker limits, on macOS.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from sandbox.backend import Attachment, RunHandle, RunResult, RunSpec, Status
from sandbox.errors import BackendError, RunLost, UntrustedAgentRefused
from sandbox.process import processes, supervised
from sandbox.process.supervised import LOOK_SECONDS, START_SECONDS
from sandbox.supervision import control
from sandbox.supervision.follow import Follower
from sandbox.world.files import remove_tree
from sandbox.world.layout import environment, lay_out, start_command


class ProcessBackend:
    """Runs agents as processes. See ``sandbox.backend.Backend`` for the methods.

    Leaving a ``with`` block, ``close``, and the normal end of Python stop what is still running; SIGKILL does not.
    """

    name = "process"

    def __init__(self, *, allow_untrusted: bool = False) -> None:
        """Make a backend; nothing is started.

        Args:
            allow_untrusted: run agents that are not marked as trusted, too. They can read whatever the user can, the
                answers included.
        """
        self.allow_untrusted = allow_untrusted
        self._mutex = threading.Lock()
        self._closed = False
        self._owner = os.getpid()
        self._children: dict[Path, subprocess.Popen[bytes]] = {}
        self._open: dict[Path, list[int]] = {}  # runs not known to have ended: work directory -> cores
        atexit.register(self.close)

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what still runs."""
        self.close()

    def start(self, spec: RunSpec) -> RunHandle:
        """Make sure that the run exists; see ``Backend.start``."""
        if not (spec.agent.trusted or self.allow_untrusted):
            raise UntrustedAgentRefused(
                f"agent {spec.agent.name!r} is not marked as trusted and the process backend does not isolate it "
                "from this machine: use a container backend, or insist with --allow-untrusted"
            )
        layout = control.Layout(spec.workdir.absolute())
        try:
            layout.workdir.mkdir(parents=True, exist_ok=True)
            return self._start(spec, layout)
        except OSError as error:
            raise BackendError(
                f"run {spec.run_id} cannot be started in {layout.workdir}: {error.strerror or error}"
            ) from error

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run; see ``Backend.wait``."""
        layout = control.Layout(handle.workdir)
        follower = Follower(layout.log, handle.log_offset, on_log)
        with contextlib.closing(follower):
            while supervised.alive(layout):
                follower.forward()
                supervised.sleep(layout, LOOK_SECONDS)
            follower.forward(last=True)
        self._forget(layout)
        outcome = control.read(layout.outcome, control.Outcome)
        if outcome is None:
            return self._lost(handle, layout)
        return RunResult(
            status=cast(Status, outcome.status),
            message=outcome.message,
            exit_code=outcome.exit_code,
            started_at=datetime.fromisoformat(outcome.started_at),
            finished_at=datetime.fromisoformat(outcome.finished_at),
            duration_seconds=outcome.duration_seconds,
            submission=layout.collected / "submission.csv" if outcome.has_submission else None,
            logs=layout.collected / "logs",
            code=layout.collected / "code",
            snapshots=layout.snapshots,
        )

    def stop(self, handle: RunHandle) -> None:
        """End the run and everything it started; see ``Backend.stop``."""
        supervised.stop(control.Layout(handle.workdir))

    def discard(self, handle: RunHandle) -> None:
        """Remove all the run left on this machine; see ``Backend.discard``."""
        layout = control.Layout(handle.workdir)
        supervised.stop(layout)
        self._forget(layout)
        remove_tree(layout.workdir)

    def close(self) -> None:
        """Stop every run that is not known to have ended; afterwards ``start`` refuses. From any thread."""
        with self._mutex:
            self._closed = True
            layouts = [control.Layout(workdir) for workdir in self._open]
        atexit.unregister(self.close)
        if os.getpid() != self._owner:  # a forked copy of the orchestrator owns no runs
            return
        for layout in layouts:  # all at once, as each may take its grace period
            supervised.ask_to_stop(layout)
        for layout in layouts:
            supervised.stop(layout)

    def _start(self, spec: RunSpec, layout: control.Layout) -> RunHandle:
        give_up = time.monotonic() + START_SECONDS
        identity = _identity(spec)
        while True:
            task = control.read(layout.task, control.Task)
            if task and task.run_id != spec.run_id:
                raise BackendError(
                    f"{layout.workdir} belongs to run {task.run_id}: give every run a work directory of its own"
                )
            with supervised.lock(layout) as lock:
                if lock is not None:
                    return self._begin_or_find(spec, layout, task, lock)
            if supervised.find(layout) and task:
                if task.identity == identity:
                    self._open_run(layout, task.cores or [])
                    return _handle(spec, layout, "running")
                supervised.stop(layout)  # the agent has been changed meanwhile
            if time.monotonic() > give_up:
                raise BackendError(
                    f"another process has been starting run {spec.run_id} for {START_SECONDS:g} seconds: "
                    "wait for it or end it"
                )
            time.sleep(0.05)

    def _begin_or_find(self, spec: RunSpec, layout: control.Layout, task: control.Task | None, lock: int) -> RunHandle:
        """With the lock held, hence no supervisor alive."""
        outcome = control.read(layout.outcome, control.Outcome)
        if outcome and outcome.status != "cancelled" and task and task.identity == _identity(spec):
            return _handle(spec, layout, "finished")
        if task and not outcome:
            processes.end_marked(task.marker)
        for leftover in (layout.control, layout.collected, layout.home, layout.snapshots):
            remove_tree(leftover)
        layout.control.mkdir()
        try:
            lay_out(spec, layout.home)
        except BaseException:
            remove_tree(layout.home)  # the disk may be full of it
            raise
        cores = self._open_run(layout, self._choose_cores(spec.limits.cpus))
        try:
            self._launch(spec, layout, cores, lock)
        except BaseException:
            supervised.ask_to_stop(layout)
            raise
        return _handle(spec, layout, "new")

    def _launch(self, spec: RunSpec, layout: control.Layout, cores: list[int], lock: int) -> None:
        marker = uuid.uuid4().hex
        search = os.pathsep.join(
            [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        )
        threads = len(cores or processes.available_cores() or []) or min(spec.limits.cpus or 64, os.cpu_count() or 1)
        env = environment(spec, layout.home, python=sys.executable, path=search, threads=threads)
        task = control.Task(
            run_id=spec.run_id,
            identity=_identity(spec),
            marker=marker,
            command=start_command(spec, layout.home),
            env={**env, processes.RUN_MARKER: marker},
            limits=spec.limits.as_dict(),
            cores=cores or None,
        )
        control.write(layout.task, task)
        # The agent can read its supervisor's environment, so nothing of the orchestrator's is passed on there either.
        package = str(Path(__file__).resolve().parents[2])
        with layout.supervisor_log.open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "sandbox.process.supervisor", str(layout.workdir), str(lock)],
                env={"PATH": search, "LANG": "C.UTF-8", "PYTHONPATH": package, "PYTHONSAFEPATH": "1"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
            )
        self._children[layout.workdir] = child
        give_up = time.monotonic() + START_SECONDS
        while control.read(layout.supervisor, control.Supervisor) is None:
            if child.poll() is not None or time.monotonic() > give_up:
                self._forget(layout)
                raise BackendError(f"run {spec.run_id} was not started: {supervised.last_words(layout)}")
            time.sleep(0.01)

    def _choose_cores(self, count: int | None) -> list[int]:
        """The ``count`` cores that the fewest runs have; none when there is nothing to choose."""
        available = processes.available_cores()
        if available is None or count is None or count >= len(available):
            return []
        with self._mutex:
            busy = Counter(core for cores in self._open.values() for core in cores)
        return sorted(sorted(available, key=lambda core: busy[core])[:count])

    def _open_run(self, layout: control.Layout, cores: list[int]) -> list[int]:
        with self._mutex:
            if self._closed:
                raise BackendError("the backend is closed: no run can be started")
            self._open[layout.workdir] = cores
        return cores

    def _forget(self, layout: control.Layout) -> None:
        with self._mutex:
            self._open.pop(layout.workdir, None)
            child = self._children.pop(layout.workdir, None)
        if child:
            child.wait()

    def _lost(self, handle: RunHandle, layout: control.Layout) -> RunResult:
        task = control.read(layout.task, control.Task)
        if task:
            processes.end_marked(task.marker)
        if not layout.stop.exists():
            raise RunLost(
                f"the supervisor of run {handle.run_id} ended without an outcome ({supervised.last_words(layout)}): "
                "start the run again"
            )
        for folder in (layout.collected / "logs", layout.collected / "code"):
            folder.mkdir(parents=True, exist_ok=True)
        supervisor = control.read(layout.supervisor, control.Supervisor)
        now = datetime.now(UTC)
        began = datetime.fromisoformat(supervisor.started_at) if supervisor else now
        return RunResult(
            status="cancelled",
            message="stopped by the user",
            exit_code=None,
            started_at=began,
            finished_at=now,
            duration_seconds=(now - began).total_seconds(),
            submission=None,
            logs=layout.collected / "logs",
            code=layout.collected / "code",
        )


def _identity(spec: RunSpec) -> str:
    parts = (spec.competition_id, str(spec.seed), spec.agent.name, spec.agent.fingerprint())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _handle(spec: RunSpec, layout: control.Layout, attachment: Attachment) -> RunHandle:
    supervisor = control.read(layout.supervisor, control.Supervisor)
    offset = layout.log.stat().st_size if attachment != "new" and layout.log.exists() else 0
    return RunHandle(
        run_id=spec.run_id,
        workdir=layout.workdir,
        backend=ProcessBackend.name,
        reference=f"pid {supervisor.pid}" if supervisor else "",
        attachment=attachment,
        log=layout.log,
        log_offset=offset,
    )
