"""The Docker backend: every run in a container of its own, on a network of its own, with no answers and no rights.

A container outlives its orchestrator. `start` finds it by its label, and its limits count from its own start.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from sandbox.backend import Attachment, RunHandle, RunResult, RunSpec, Status
from sandbox.docker import network, runs, watch
from sandbox.docker.check import refuse_privileged
from sandbox.docker.containers import check_runtime, find_image
from sandbox.docker.engine import connect
from sandbox.docker.gpus import Gpus
from sandbox.docker.launch import launch
from sandbox.docker.proxy import AllowlistProxy
from sandbox.docker.results import finish, undo_collection
from sandbox.errors import BackendError, RunLost
from sandbox.limits import CANCEL_SECONDS
from sandbox.services.run_services import Reach
from sandbox.supervision import control
from sandbox.supervision.follow import Follower
from sandbox.world.files import remove_tree

if TYPE_CHECKING:
    from docker import DockerClient


class DockerBackend:
    """Runs agents in containers. See ``sandbox.backend.Backend`` for the methods."""

    name = "docker"

    def __init__(
        self,
        *,
        policy: network.Policy = "gateway",
        allowed_hosts: Collection[str] = (),
        runtime: str | None = None,
        allow_privileged: bool = False,
        gpus: list[str] | None = None,
        client: DockerClient | None = None,
    ) -> None:
        """Connect to the engine.

        Args:
            policy: what agents may reach.
            allowed_hosts: for the policy ``allowlist``; ``.example.org`` stands for all below.
            runtime: of the engine's runtimes: runc, sysbox-runc, runsc.
            allow_privileged: run agents that want a privileged container, which does not isolate.
            gpus: ids of the GPUs to share out; by default all.
            client: by default one of the engine that the environment names.

        Raises:
            BackendError: no engine, or it has no such runtime.
        """
        self.policy, self.allowed_hosts, self.runtime = policy, tuple(allowed_hosts), runtime
        self.allow_privileged = allow_privileged
        self._client = client or connect()
        check_runtime(self._client, runtime)
        self._gpus = Gpus(self._client, gpus)
        self._mutex = threading.Lock()
        self._closed = False
        self._owner = os.getpid()
        self._open: dict[Path, tuple[RunHandle | None, int]] = {}  # work directory -> run, lock
        self._proxies: dict[Path, AllowlistProxy] = {}
        atexit.register(self.close)

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what still runs."""
        self.close()

    def reach(self, spec: RunSpec) -> Reach:
        """How the run reaches its services, which are to be opened before it starts.

        The run is this process's from here on, so that no two serve it.

        Raises:
            BackendError: another process waits for it.
        """
        layout = control.Layout(spec.workdir.absolute())
        layout.workdir.mkdir(parents=True, exist_ok=True)
        self._acquire(spec, layout)
        return Reach(
            network.socket_folder(layout.workdir),
            f"http://{network.ALIAS}:{network.VALIDATION_PORT}",
            f"http://{network.ALIAS}:{network.GATEWAY_PORT}",
        )

    def start(self, spec: RunSpec) -> RunHandle:
        """Make sure that the run exists; see ``Backend.start``."""
        refuse_privileged(spec.agent, allowed=self.allow_privileged)
        layout = control.Layout(spec.workdir.absolute())
        try:
            layout.workdir.mkdir(parents=True, exist_ok=True)
            self._acquire(spec, layout)
            attachment = self._begin_or_find(spec, layout)
            self._serve_hosts(layout)
        except OSError as error:
            self._release(layout)
            raise BackendError(
                f"run {spec.run_id} cannot be started in {layout.workdir}: {error.strerror or error}"
            ) from error
        except BaseException:
            self._release(layout)
            raise
        container = runs.find(self._client, layout.workdir)
        handle = RunHandle(
            run_id=spec.run_id,
            workdir=layout.workdir,
            backend=self.name,
            reference=container.id if container else "",
            attachment=attachment,
            log=layout.log,
            log_offset=layout.log.stat().st_size if attachment != "new" and layout.log.exists() else 0,
        )
        with self._mutex:
            self._open[layout.workdir] = (handle, self._open[layout.workdir][1])
        return handle

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run; see ``Backend.wait``."""
        layout = control.Layout(handle.workdir)
        outcome = control.read(layout.outcome, control.Outcome)
        task = control.read(layout.task, control.Task)
        if task is None:
            raise RunLost(f"run {handle.run_id} has left no trace in {layout.workdir}: start the run again")
        if outcome is None:
            container = runs.find(self._client, layout.workdir)
            if container is None:
                raise RunLost(f"the container of run {handle.run_id} is gone: start the run again")
            with contextlib.closing(Follower(layout.log, handle.log_offset, on_log)) as follower:
                watched = watch.Watch(container, layout, watch.Limits(**task.limits), follower.forward)
                outcome = finish(watched, watched.until_end(), layout)
                follower.forward(last=True)
        self._end(layout)
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
            image=task.marker,
        )

    def stop(self, handle: RunHandle) -> None:
        """End the run and everything it started; see ``Backend.stop``."""
        layout = control.Layout(handle.workdir)
        if control.read(layout.outcome, control.Outcome):
            return
        with contextlib.suppress(FileNotFoundError):
            layout.stop.touch()
        container = runs.find(self._client, layout.workdir)
        if container is not None:
            with contextlib.suppress(BackendError):  # a waiting thread removes it meanwhile
                watch.end(container, CANCEL_SECONDS)

    def discard(self, handle: RunHandle) -> None:
        """Remove all the run left on this machine; see ``Backend.discard``."""
        layout = control.Layout(handle.workdir)
        self.stop(handle)
        self._end(layout)
        remove_tree(network.socket_folder(layout.workdir))
        remove_tree(layout.workdir)
        self._release(layout)

    def close(self) -> None:
        """Stop every run that is not known to have ended; afterwards ``start`` refuses. From any thread."""
        with self._mutex:
            self._closed = True
            handles = [handle for handle, _ in self._open.values() if handle]
        atexit.unregister(self.close)
        if os.getpid() != self._owner:
            return
        stopping = [threading.Thread(target=self._stop_quietly, args=(handle,)) for handle in handles]
        for thread in stopping:  # all at once, as each may take its grace period
            thread.start()
        for thread in stopping:
            thread.join()

    def _stop_quietly(self, handle: RunHandle) -> None:
        with contextlib.suppress(BackendError):
            self.stop(handle)

    def _begin_or_find(self, spec: RunSpec, layout: control.Layout) -> Attachment:
        task = control.read(layout.task, control.Task)
        if task and task.run_id != spec.run_id:
            raise BackendError(
                f"{layout.workdir} belongs to run {task.run_id}: give every run a work directory of its own"
            )
        identity = self._identity(spec)
        container = runs.find(self._client, layout.workdir)
        if task and task.identity == identity and not layout.stop.exists():
            outcome = control.read(layout.outcome, control.Outcome)
            if outcome and outcome.status != "cancelled":
                return "finished"
            if container is not None and container.status != "created" and not outcome:
                undo_collection(layout)
                return "running"
        network.remove(self._client, layout.workdir)
        for leftover in (layout.control, layout.collected, layout.home, layout.snapshots):
            remove_tree(leftover)
        try:
            self._begin(spec, layout, identity)
        except BaseException:
            with contextlib.suppress(BackendError):
                network.remove(self._client, layout.workdir)
            remove_tree(layout.home)
            raise
        return "new"

    def _begin(self, spec: RunSpec, layout: control.Layout, identity: str) -> None:
        image = find_image(self._client, spec.agent.image_name, spec.agent.name)
        gpus = self._gpus.take(str(layout.workdir), spec.limits.gpus or 0)
        launch(
            self._client,
            spec,
            layout,
            image=image,
            identity=identity,
            policy=self.policy,
            gpus=gpus,
            runtime=self.runtime,
        )

    def _serve_hosts(self, layout: control.Layout) -> None:
        if self.policy == "allowlist" and layout.workdir not in self._proxies:
            socket = network.socket_folder(layout.workdir) / network.PROXY_SOCKET
            self._proxies[layout.workdir] = AllowlistProxy(socket, self.allowed_hosts)

    def _end(self, layout: control.Layout) -> None:
        """The container has served its purpose; the work directory stays."""
        proxy = self._proxies.pop(layout.workdir, None)
        if proxy:
            proxy.close()
        self._gpus.give_back(str(layout.workdir))
        network.remove(self._client, layout.workdir)

    def _acquire(self, spec: RunSpec, layout: control.Layout) -> None:
        with self._mutex:
            if self._closed:
                raise BackendError("the backend is closed: no run can be started")
            if layout.workdir in self._open:
                return
            lock = runs.lock(layout)
            if lock is None:
                raise BackendError(f"another process waits for run {spec.run_id}: let it, or end it")
            self._open[layout.workdir] = (None, lock)

    def _release(self, layout: control.Layout) -> None:
        self._gpus.give_back(str(layout.workdir))
        with self._mutex:
            _, lock = self._open.pop(layout.workdir, (None, None))
        if lock is not None:
            os.close(lock)

    def _identity(self, spec: RunSpec) -> str:
        parts = (spec.competition_id, str(spec.seed), spec.agent.name, spec.agent.fingerprint(), self.policy)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()
