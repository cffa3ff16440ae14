"""The Docker backend: every run has a container of its own. It has no access to the answers and no privileges.

A container outlives its orchestrator: `start` finds it by its label, and the time limit counts from the container's
start.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from common.locks import acquire
from sandbox.backend import Attachment, Capabilities, RunHandle, RunResult, RunSpec, ServiceAddresses
from sandbox.confinement import loopback
from sandbox.confinement.proxy import Proxies, require_listed
from sandbox.definitions import BASE_IMAGE, Agent
from sandbox.docker import abandoned, engines, network, runs, watch
from sandbox.docker.containers import ContainerConfig, find_image, user
from sandbox.docker.engine import connect
from sandbox.docker.holdings import holdings
from sandbox.docker.launch import launch
from sandbox.errors import BackendError, RunLost
from sandbox.host.folder import socket_folder
from sandbox.host.gpus import check_count
from sandbox.isolation import Isolation, Network
from sandbox.limits import CANCEL_SECONDS, Limits
from sandbox.supervision import base, control
from sandbox.supervision.endings import conclude
from sandbox.supervision.follow import Follower
from sandbox.world.files import remove_tree

if TYPE_CHECKING:
    from docker import DockerClient


class DockerBackend(base.SupervisingBackend):
    """Runs agents in containers. See ``sandbox.backend.Backend`` for the methods."""

    name = "docker"
    capabilities = Capabilities(
        isolates=True, networks=("none", "gateway", "allowlist", "open", "private"), gpus=True, mounts_data=True
    )
    policy: Network

    def __init__(
        self,
        *,
        policy: Network = "gateway",
        allowed_hosts: Collection[str] = (),
        runtime: str | None = None,
        allow_privileged: bool = False,
        client: DockerClient | None = None,
    ) -> None:
        """Connect to the engine.

        Args:
            policy: what agents may reach.
            allowed_hosts: for the policy ``allowlist``; ``.example.org`` stands for all subdomains.
            runtime: one of the engine's runtimes: runc, sysbox-runc, runsc.
            allow_privileged: run agents that ask for a privileged container, which does not isolate.
            client: by default a client of the engine that the environment names.

        Raises:
            BackendError: no engine answers, or it has no such runtime.
        """
        self.policy, self.allowed_hosts, self.runtime = policy, tuple(allowed_hosts), runtime
        self.allow_privileged = allow_privileged
        self._client = client or connect()
        engines.check_runtime(self._client, runtime)
        self._open: dict[Path, tuple[RunHandle | None, int]] = {}  # work directory -> run, lock
        self._proxies = Proxies(policy, self.allowed_hosts)
        super().__init__()  # last, as it registers `close` for the end of the process

    @classmethod
    def create(cls, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None) -> Self:
        """A backend with a connection to the engine; see ``Backend.create``."""
        return cls(
            policy=isolation.network,
            allowed_hosts=allowed_hosts,
            runtime=isolation.runtime,
            allow_privileged=isolation.allow_privileged,
        )

    @classmethod
    def conditions(cls, isolation: Isolation) -> dict[str, Any]:
        """The network policy and the runtime, which no other backend has; see ``Backend.conditions``."""
        return {"network": isolation.network, "runtime": isolation.runtime or "default"}

    @classmethod
    def require_runnable(
        cls, agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None
    ) -> None:
        """Require permissions, engine, runtime, image and GPUs; see ``Backend.require_runnable``."""
        _refuse_privileged(agent, allowed=isolation.allow_privileged)
        if isolation.network == "allowlist":
            require_listed(agent, allowed_hosts)
        client = connect()
        engines.check_runtime(client, isolation.runtime)
        engine = engines.describe(client)
        engines.check_limits(engine, agent.limits)
        engines.check_gpus(engine, agent.limits.gpus)
        find_image(client, agent.image_name, agent.built_by)
        find_image(client, BASE_IMAGE, "base")  # the run's forwarder and backstop run in it
        check_count(agent.limits.gpus or 0)

    @classmethod
    def is_usable(cls) -> bool:
        """Whether an engine answers; see ``Backend.is_usable``."""
        try:
            connect().close()
        except BackendError:
            return False
        return True

    @classmethod
    def is_running(cls, workdir: Path) -> bool:
        """Whether the engine runs the run's container; see ``Backend.is_running``."""
        return holdings().runs(workdir)

    @classmethod
    def gpus_in_use(cls) -> set[str]:
        """GPUs that are assigned to containers of runs, also of other users; see ``Backend.gpus_in_use``."""
        return holdings().gpus()

    @classmethod
    def request_stop(cls, workdir: Path, *, attended: bool) -> None:
        """Tell the orchestrator that waits for a run to end it, or end it here; see ``Backend.request_stop``."""
        with contextlib.suppress(FileNotFoundError):
            control.Layout(workdir).stop.touch()  # the orchestrator looks for this file
        if not attended and (container := runs.find(connect(), workdir)) is not None:
            watch.stop(container, CANCEL_SECONDS)

    @classmethod
    def remove(cls, workdir: Path) -> None:
        """End a run that no orchestrator waits for, and remove everything of it; see ``Backend.remove``."""
        abandoned.end(connect(), workdir)

    def service_addresses(self, spec: RunSpec) -> ServiceAddresses:
        """Unix sockets that the run's forwarder connects to; see ``Backend.service_addresses``.

        This process then holds the run's lock, so that no other process can provide services for the run.
        """
        layout = control.Layout(spec.workdir.absolute())
        layout.workdir.mkdir(parents=True, exist_ok=True)
        self._acquire(spec, layout)
        return loopback.service_addresses(layout.workdir)

    def find(self, spec: RunSpec) -> Attachment:
        """The state that ``start`` would find; see ``Backend.find``."""
        return self._find(spec, control.Layout(spec.workdir.absolute()))

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run; see ``Backend.wait``."""
        layout = control.Layout(handle.workdir)
        outcome = control.read(layout.outcome, control.Outcome)
        launch_spec = control.read(layout.task, control.LaunchSpec)
        if launch_spec is None:
            raise RunLost(f"{layout.workdir} has no record of run {handle.run_id}: start the run again")
        if outcome is None:
            container = runs.find(self._client, layout.workdir)
            if container is None:
                raise RunLost(f"the container of run {handle.run_id} is gone: start the run again")
            with contextlib.closing(Follower(layout.log, handle.log_offset, on_log)) as follower:
                limits = Limits(**launch_spec.limits)
                end = watch.Watch(container, layout, limits, follower.forward).until_end()
                if end.reason and end.reason.status == "lost":
                    follower.forward(last=True)
                    self._remove(layout)
                    raise RunLost(f"run {handle.run_id}: {end.reason.message}")
                outcome = conclude(layout, limits, end)
                follower.forward(last=True)
        self._remove(layout)
        return base.result(layout, outcome, image=launch_spec.marker)

    def stop(self, handle: RunHandle) -> None:
        """End the run and everything it started; see ``Backend.stop``."""
        layout = control.Layout(handle.workdir)
        if control.read(layout.outcome, control.Outcome):
            return
        with contextlib.suppress(FileNotFoundError):
            layout.stop.touch()
        container = runs.find(self._client, layout.workdir)
        if container is not None:
            with contextlib.suppress(BackendError):  # a waiting thread may remove it at the same time
                watch.stop(container, CANCEL_SECONDS)

    def discard(self, handle: RunHandle) -> None:
        """Remove everything of the run from this machine; see ``Backend.discard``."""
        layout = control.Layout(handle.workdir)
        self.stop(handle)
        self._remove(layout)
        remove_tree(socket_folder(layout.workdir))
        remove_tree(layout.workdir)
        self._release(layout)

    def _stop_open_runs(self) -> None:
        with self._mutex:
            handles = [handle for handle, _ in self._open.values() if handle]
        stopping = [threading.Thread(target=self._stop_quietly, args=(handle,)) for handle in handles]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()

    def _stop_quietly(self, handle: RunHandle) -> None:
        with contextlib.suppress(BackendError):
            self.stop(handle)

    def _check(self, spec: RunSpec) -> None:
        _refuse_privileged(spec.agent, allowed=self.allow_privileged)

    def _start(self, spec: RunSpec, layout: control.Layout) -> RunHandle:
        try:
            self._acquire(spec, layout)
            self._proxies.start(layout.workdir)  # before the agent, which may connect at once
            attachment = self._start_or_find(spec, layout)
        except BaseException:
            self._proxies.close(layout.workdir)
            self._release(layout)
            raise
        container = runs.find(self._client, layout.workdir)
        handle = self._handle(spec, layout, container.id if container else "", attachment)
        with self._mutex:
            self._open[layout.workdir] = (handle, self._open[layout.workdir][1])
            stopping = self._stopping
        if stopping:  # `close` was called meanwhile, when the run was not in `_open` yet
            self._stop_quietly(handle)
        return handle

    def _find(self, spec: RunSpec, layout: control.Layout) -> Attachment:
        launch_spec = base.read_launch_spec(spec, layout)
        if launch_spec is None or launch_spec.identity != base.identity(spec, self.policy) or layout.stop.exists():
            return "new"
        outcome = control.read(layout.outcome, control.Outcome)
        if outcome:
            return "finished" if outcome.status != "cancelled" else "new"
        container = runs.find(self._client, layout.workdir)
        return "running" if container is not None and container.status != "created" else "new"

    def _start_or_find(self, spec: RunSpec, layout: control.Layout) -> Attachment:
        attachment = self._find(spec, layout)
        if attachment != "new":
            return attachment
        network.remove(self._client, layout.workdir)
        base.clear(layout)
        try:
            self._launch(spec, layout, base.identity(spec, self.policy))
        except BaseException:
            with contextlib.suppress(BackendError):
                network.remove(self._client, layout.workdir)
            remove_tree(layout.home)
            raise
        return "new"

    def _launch(self, spec: RunSpec, layout: control.Layout, identity: str) -> None:
        image = find_image(self._client, spec.agent.image_name, spec.agent.built_by)
        count, requested = len(spec.allocation.gpus), spec.limits.gpus or 0
        if count != requested:
            raise BackendError(f"run {spec.run_id} has {count} GPUs instead of {requested}")
        engine = engines.describe(self._client)
        engines.check_limits(engine, spec.limits)
        engines.check_gpus(engine, spec.limits.gpus)
        config = ContainerConfig(image, engine, self.policy, self.runtime, user(engine))
        launch(self._client, spec, layout, identity, config)

    def _remove(self, layout: control.Layout) -> None:
        """Remove the containers of a run that has ended; its work directory stays."""
        self._proxies.close(layout.workdir)
        network.remove(self._client, layout.workdir)

    def _acquire(self, spec: RunSpec, layout: control.Layout) -> None:
        with self._mutex:
            self._check_open()
            if layout.workdir in self._open:
                return
            lock = acquire(layout.lock)
            if lock is None:
                raise BackendError(f"another process is waiting for run {spec.run_id}: let it finish, or end it")
            self._open[layout.workdir] = (None, lock)

    def _release(self, layout: control.Layout) -> None:
        with self._mutex:
            _, lock = self._open.pop(layout.workdir, (None, None))
        if lock is not None:
            os.close(lock)


def _refuse_privileged(agent: Agent, *, allowed: bool) -> None:
    """Raise `BackendError` if the agent needs a privileged container and the operator does not allow that."""
    if agent.privileged and not allowed:
        raise BackendError(
            f"agent {agent.name!r} requests a privileged container, which can take over this machine: "
            "allow it with --allow-privileged, or remove `privileged` and use a runtime such as sysbox-runc"
        )
