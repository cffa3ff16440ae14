"""The process backend: agents as processes of this machine, each with a supervisor that outlives the orchestrator.

It enforces limits and cleans up, but does not isolate: an agent can read everything that its user can read. It is
therefore for trusted agents only. It needs neither Docker nor root, and works on Linux and, with weaker limits, on
macOS.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from common.locks import acquire
from sandbox.backend import Attachment, Capabilities, RunHandle, RunResult, RunSpec, ServiceAddresses
from sandbox.errors import BackendError, RunLost, UntrustedAgentRefused
from sandbox.isolation import Isolation
from sandbox.process import processes, supervised
from sandbox.process.supervised import POLL_SECONDS, START_SECONDS
from sandbox.supervision import base, control
from sandbox.supervision.endings import CANCELLED
from sandbox.supervision.follow import Follower
from sandbox.world.files import remove_tree
from sandbox.world.layout import environment, lay_out, start_command


class ProcessBackend(base.SupervisingBackend):
    """Runs agents as processes. See ``sandbox.backend.Backend`` for the methods."""

    name = "process"
    capabilities = Capabilities(gpus=True, supervised=True)
    supervisor: ClassVar[str] = "sandbox.process.supervisor"
    """The module that supervises a run, as a program."""

    def __init__(self, *, allow_untrusted: bool = False) -> None:
        """Create a backend without runs.

        Args:
            allow_untrusted: also run agents that are not marked as trusted. They can read everything that the user can
                read, including the answers.
        """
        super().__init__()
        self.allow_untrusted = allow_untrusted
        self._children: dict[Path, subprocess.Popen[bytes]] = {}
        self._open: dict[Path, list[int]] = {}  # runs not known to have ended: work directory -> CPU cores

    @classmethod
    def create(cls, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None) -> Self:
        """A backend without runs; see ``Backend.create``."""
        return cls(allow_untrusted=isolation.allow_untrusted)

    @classmethod
    def conditions(cls, isolation: Isolation) -> dict[str, Any]:
        """No conditions: this backend is the default, and has no settings; see ``Backend.conditions``."""
        return {}

    @classmethod
    def request_stop(cls, workdir: Path, *, attended: bool) -> None:
        """Ask the supervisor to end a run; see ``Backend.request_stop``."""
        supervised.request_stop(control.Layout(workdir))

    @classmethod
    def remove(cls, workdir: Path) -> None:
        """End a run, and remove everything of it; see ``Backend.remove``."""
        supervised.discard(control.Layout(workdir))

    def service_addresses(self, spec: RunSpec) -> ServiceAddresses:
        """Ports of 127.0.0.1; see ``Backend.service_addresses``."""
        return ServiceAddresses()

    def find(self, spec: RunSpec) -> Attachment:
        """The state that ``start`` would find; see ``Backend.find``."""
        layout = control.Layout(spec.workdir.absolute())
        launch_spec = base.read_launch_spec(spec, layout)
        if launch_spec is None or launch_spec.identity != self._identity(spec):
            return "new"
        if supervised.alive(layout):
            return "running"
        outcome = control.read(layout.outcome, control.Outcome)
        return "finished" if outcome and outcome.status != "cancelled" else "new"

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run; see ``Backend.wait``."""
        layout = control.Layout(handle.workdir)
        with contextlib.closing(Follower(layout.log, handle.log_offset, on_log)) as follower:
            while supervised.alive(layout):
                follower.forward()
                supervised.sleep(layout, POLL_SECONDS)
            follower.forward(last=True)
        self._forget(layout)
        outcome = control.read(layout.outcome, control.Outcome)
        if outcome is None:
            outcome = self._without_outcome(handle, layout)
        launch_spec = control.read(layout.task, control.LaunchSpec)
        result = base.result(layout, outcome, image=launch_spec.image if launch_spec else None)
        return replace(result, enforcement=(launch_spec.enforcement if launch_spec else None) or None)

    def stop(self, handle: RunHandle) -> None:
        """End the run and everything it started; see ``Backend.stop``."""
        supervised.stop(control.Layout(handle.workdir))

    def discard(self, handle: RunHandle) -> None:
        """Remove everything of the run from this machine; see ``Backend.discard``."""
        layout = control.Layout(handle.workdir)
        supervised.discard(layout)
        self._forget(layout)

    def _stop_open_runs(self) -> None:
        with self._mutex:
            layouts = [control.Layout(workdir) for workdir in self._open]
        for layout in layouts:
            supervised.request_stop(layout)
        for layout in layouts:
            supervised.stop(layout)

    def _check(self, spec: RunSpec) -> None:
        if not (spec.agent.trusted or self.allow_untrusted):
            raise UntrustedAgentRefused(
                f"agent {spec.agent.name!r} is not marked as trusted and the process backend does not isolate it "
                "from this machine: use --backend docker or rootless, or accept that with --allow-untrusted"
            )

    def _start(self, spec: RunSpec, layout: control.Layout) -> RunHandle:
        deadline = time.monotonic() + START_SECONDS
        identity = self._identity(spec)
        while True:
            launch_spec = base.read_launch_spec(spec, layout)
            lock = acquire(layout.lock)
            if lock is not None:
                try:
                    return self._start_or_find(spec, layout, launch_spec, lock)
                finally:
                    os.close(lock)  # not released, because the supervisor has inherited it
            if supervised.find(layout) and launch_spec:
                if launch_spec.identity == identity:
                    self._add_open(layout, launch_spec.cores or [])
                    return self._handle_of(spec, layout, "running")
                supervised.stop(layout)  # the agent has changed since the run was started
            if time.monotonic() > deadline:
                raise BackendError(
                    f"another process has been starting run {spec.run_id} for {START_SECONDS:g} seconds: "
                    "wait for it or end it"
                )
            time.sleep(0.05)

    def _start_or_find(
        self, spec: RunSpec, layout: control.Layout, launch_spec: control.LaunchSpec | None, lock: int
    ) -> RunHandle:
        """Called with the lock held, so no supervisor is alive."""
        outcome = control.read(layout.outcome, control.Outcome)
        if outcome and outcome.status != "cancelled" and launch_spec and launch_spec.identity == self._identity(spec):
            return self._handle_of(spec, layout, "finished")
        if launch_spec and not outcome:
            processes.kill_by_marker(launch_spec.marker)
        base.clear(layout)
        layout.control.mkdir()
        try:
            spec = self._lay_out(spec, layout)
        except BaseException:
            remove_tree(layout.home)  # it may have filled the disk
            raise
        cores = self._add_open(layout, self._choose_cores(spec.limits.cpus))
        try:
            self._launch(spec, layout, self._launch_spec(spec, layout, cores), [lock])
        except BaseException:
            supervised.request_stop(layout)
            raise
        return self._handle_of(spec, layout, "new")

    def _identity(self, spec: RunSpec) -> str:
        """A hash of what a run that is found must have in common with this one."""
        return base.identity(spec)

    def _lay_out(self, spec: RunSpec, layout: control.Layout) -> RunSpec:
        """Create the agent's home; returns the run with the data that the agent reads."""
        lay_out(spec, layout.home)
        return spec

    def _launch_spec(self, spec: RunSpec, layout: control.Layout, cores: list[int]) -> control.LaunchSpec:
        """What the supervisor starts."""
        threads = len(cores or processes.available_cores() or []) or min(spec.limits.cpus or 64, os.cpu_count() or 1)
        env = environment(spec, layout.home, python=sys.executable, path=_search(), threads=threads)
        # Only containers hide devices; programs that use CUDA keep to these.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(spec.allocation.gpus)
        marker = uuid.uuid4().hex
        return control.LaunchSpec(
            run_id=spec.run_id,
            identity=self._identity(spec),
            marker=marker,
            command=start_command(spec, layout.home),
            env={**env, processes.RUN_MARKER: marker},
            limits=spec.limits.as_dict(),
            cores=cores or None,
        )

    def _launch(self, spec: RunSpec, layout: control.Layout, launch_spec: control.LaunchSpec, locks: list[int]) -> None:
        control.write(layout.task, launch_spec)
        # The agent can read its supervisor's environment, so the supervisor does not inherit the orchestrator's either.
        package = str(Path(__file__).resolve().parents[2])
        # The supervisor keeps the locks of the run and of its slot, as long as the agent runs.
        locks = [*locks, *([] if spec.allocation.descriptor is None else [spec.allocation.descriptor])]
        with layout.supervisor_log.open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", self.supervisor, str(layout.workdir), *map(str, locks)],
                env={
                    "PATH": _search(),
                    "LANG": "C.UTF-8",
                    "PYTHONPATH": package,
                    "PYTHONSAFEPATH": "1",
                    "TMPDIR": tempfile.gettempdir(),  # where the sockets of the run's services are
                },
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=locks,
            )
        self._children[layout.workdir] = child
        deadline = time.monotonic() + START_SECONDS
        while control.read(layout.supervisor, control.Supervisor) is None:
            if child.poll() is not None or time.monotonic() > deadline:
                if control.read(layout.supervisor, control.Supervisor):
                    break  # it was killed right after it had started the agent: `wait` says so
                supervised.request_stop(layout)  # it may be late only
                self._forget(layout)
                processes.kill_by_marker(launch_spec.marker)  # it may have been killed before it could end the agent
                raise BackendError(f"run {spec.run_id} was not started: {supervised.last_log_line(layout)}")
            time.sleep(0.01)

    def _choose_cores(self, count: int | None) -> list[int]:
        """The ``count`` cores with the fewest runs; an empty list if all cores may be used."""
        available = processes.available_cores()
        if available is None or count is None or count >= len(available):
            return []
        with self._mutex:
            busy = Counter(core for cores in self._open.values() for core in cores)
        return sorted(sorted(available, key=lambda core: busy[core])[:count])

    def _add_open(self, layout: control.Layout, cores: list[int]) -> list[int]:
        with self._mutex:
            self._check_open()
            self._open[layout.workdir] = cores
        return cores

    def _forget(self, layout: control.Layout) -> None:
        with self._mutex:
            self._open.pop(layout.workdir, None)
            child = self._children.pop(layout.workdir, None)
        if child:
            child.wait()

    def _without_outcome(self, handle: RunHandle, layout: control.Layout) -> control.Outcome:
        """The outcome of a run whose supervisor was killed. Raises `RunLost` unless a stop was requested."""
        launch_spec = control.read(layout.task, control.LaunchSpec)
        if launch_spec:
            processes.kill_by_marker(launch_spec.marker)
        if not layout.stop.exists():
            raise RunLost(
                f"the supervisor of run {handle.run_id} ended without an outcome ({supervised.last_log_line(layout)}): "
                "start the run again"
            )
        for folder in (layout.harvested / "logs", layout.harvested / "code", layout.snapshots):
            folder.mkdir(parents=True, exist_ok=True)
        supervisor = control.read(layout.supervisor, control.Supervisor)
        now = datetime.now(UTC)
        started_at = datetime.fromisoformat(supervisor.started_at) if supervisor else now
        return control.Outcome(
            status=CANCELLED.status,
            message=CANCELLED.message,
            exit_code=None,
            started_at=started_at.isoformat(),
            finished_at=now.isoformat(),
            duration_seconds=(now - started_at).total_seconds(),
            has_submission=False,
        )

    def _handle_of(self, spec: RunSpec, layout: control.Layout, attachment: Attachment) -> RunHandle:
        supervisor = control.read(layout.supervisor, control.Supervisor)
        return self._handle(spec, layout, f"pid {supervisor.pid}" if supervisor else "", attachment)


def _search() -> str:
    """Where the programs of agents and supervisors are looked for."""
    return os.pathsep.join(
        [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    )
