"""The rootless backend: every agent has namespaces of its own, made by bubblewrap, without a daemon and without root.

A supervisor outlives the orchestrator, as in the process backend. The agent sees the root file system of its image, its
home and the data, and nothing else of this machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Self

from sandbox.backend import Capabilities, RunHandle, RunResult, RunSpec, ServiceAddresses
from sandbox.confinement import loopback, world
from sandbox.confinement.proxy import Proxies, require_listed
from sandbox.confinement.world import Mount
from sandbox.definitions import Agent
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.host.gpus import check_count
from sandbox.isolation import UNPRIVILEGED, Isolation, Network
from sandbox.limits import GIB
from sandbox.process.backend import ProcessBackend
from sandbox.process.processes import RUN_MARKER
from sandbox.rootless import bubblewrap, machine, syscalls
from sandbox.rootless.gpus import NONE, driver_files, gpus
from sandbox.rootless.limits import delegated, enforcement
from sandbox.rootless.roots import hold, root_of
from sandbox.supervision import base, control, openfiles
from sandbox.world.files import remove_tree


class RootlessBackend(ProcessBackend):
    """Runs agents in namespaces. See ``sandbox.backend.Backend`` for the methods."""

    name = "rootless"
    capabilities = Capabilities(
        isolates=True, networks=("none", "gateway", "allowlist", "open"), gpus=True, mounts_data=True, supervised=True
    )
    supervisor = "sandbox.rootless.supervisor"
    policy: Network

    def __init__(self, *, scratch: Path, policy: Network = "gateway", allowed_hosts: Collection[str] = ()) -> None:
        """Create a backend without runs.

        Args:
            scratch: the folder with the root file systems of agents.
            policy: what agents may reach.
            allowed_hosts: for the policy ``allowlist``; ``.example.org`` stands for all subdomains.

        Raises:
            BackendError: this machine cannot isolate agents in this way.
        """
        self._bwrap = require_usable()
        self.scratch, self.policy, self.allowed_hosts = scratch, policy, tuple(allowed_hosts)
        self._proxies = Proxies(policy, self.allowed_hosts)
        super().__init__()

    @classmethod
    def create(cls, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None) -> Self:
        """A backend without runs; see ``Backend.create``."""
        return cls(scratch=_given(scratch), policy=isolation.network, allowed_hosts=allowed_hosts)

    @classmethod
    def conditions(cls, isolation: Isolation) -> dict[str, Any]:
        """The backend and the network policy; see ``Backend.conditions``."""
        return {"backend": cls.name, "network": isolation.network}

    @classmethod
    def require_runnable(
        cls, agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None
    ) -> None:
        """Require namespaces, the filter of system calls and the agent's root; see ``Backend.require_runnable``."""
        _refuse_privileged(agent)
        if isolation.network == "allowlist":
            require_listed(agent, allowed_hosts)
        require_usable()
        syscalls.program()
        root_of(agent.image_name, _given(scratch), agent.built_by)
        check_count(agent.limits.gpus or 0)

    @classmethod
    def is_usable(cls) -> bool:
        """Whether this machine can isolate agents; see ``Backend.is_usable``."""
        try:
            require_usable()
            syscalls.program()
        except BackendError:
            return False
        return True

    @classmethod
    def remove(cls, workdir: Path) -> None:
        """End a run, and remove everything of it; see ``Backend.remove``."""
        super().remove(workdir)
        remove_tree(socket_folder(workdir))

    def service_addresses(self, spec: RunSpec) -> ServiceAddresses:
        """Unix sockets that the run's forwarder connects to; see ``Backend.service_addresses``."""
        return loopback.service_addresses(spec.workdir.absolute())

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run; see ``Backend.wait``."""
        try:
            return super().wait(handle, on_log)
        finally:
            self._proxies.close(handle.workdir)

    def discard(self, handle: RunHandle) -> None:
        """Remove everything of the run from this machine; see ``Backend.discard``."""
        super().discard(handle)
        self._proxies.close(handle.workdir)
        remove_tree(socket_folder(handle.workdir))

    def _check(self, spec: RunSpec) -> None:
        _refuse_privileged(spec.agent)

    def _identity(self, spec: RunSpec) -> str:
        return base.identity(spec, self.policy)

    def _start(self, spec: RunSpec, layout: control.Layout) -> RunHandle:
        self._proxies.start(layout.workdir)
        try:
            return super()._start(spec, layout)
        except BaseException:
            self._proxies.close(layout.workdir)
            raise

    def _lay_out(self, spec: RunSpec, layout: control.Layout) -> RunSpec:
        return replace(spec, data=world.lay_out(spec, layout, (UNPRIVILEGED, UNPRIVILEGED)))

    def _launch_spec(self, spec: RunSpec, layout: control.Layout, cores: list[int]) -> control.LaunchSpec:
        root = root_of(spec.agent.image_name, self.scratch, spec.agent.built_by)
        launch_spec = super()._launch_spec(spec, layout, cores)
        env = {**root.environment, **world.environment(spec, root.environment, self.policy)}
        devices = gpus(spec.allocation.gpus, driver_files()) if spec.allocation.gpus else NONE
        env |= devices.environment(env["PATH"])
        env |= {"CUDA_VISIBLE_DEVICES": ",".join(spec.allocation.gpus), RUN_MARKER: launch_spec.marker}
        mounts = [
            Mount(PurePosixPath("/"), root.path, read_only=True),
            *world.mounts(spec, layout.home),
        ]
        limits, group = spec.limits, delegated()
        shm = limits.shm_bytes or (limits.memory_bytes or 8 * GIB) // 2
        staged = [] if os.getuid() else [str(mount.source) for mount in mounts]
        options = bubblewrap.arguments(
            bubblewrap.staged(mounts) if staged else mounts, env, shm, bubblewrap.is_folder, devices
        )
        return replace(
            launch_spec,
            command=world.start_command(spec, layout.home),
            env={RUN_MARKER: launch_spec.marker, "PATH": world.PATH},
            files=openfiles.limit(limits.processes, spec.allocation.slots),
            bubblewrap=[self._bwrap, *options],
            staged=staged,
            image=root.digest,
            enforcement=dict(enforcement(group)),
            cgroup=str(group) if group else None,
        )

    def _launch(self, spec: RunSpec, layout: control.Layout, launch_spec: control.LaunchSpec, locks: list[int]) -> None:
        held = hold(self.scratch, str(launch_spec.image))  # the supervisor inherits the lock
        try:
            super()._launch(spec, layout, launch_spec, [*locks, held])
        finally:
            os.close(held)


def require_usable() -> str:
    """The path of bubblewrap, which has just been tried.

    Raises:
        BackendError: it is missing or too old, or this machine forbids user namespaces; the message says what to do.
    """
    if (found := machine.problem()) is not None:
        raise BackendError(f"this machine cannot run agents with the rootless backend: {found}")
    return shutil.which(machine.PROGRAM) or machine.PROGRAM


def _refuse_privileged(agent: Agent) -> None:
    if agent.privileged:
        raise BackendError(f"agent {agent.name!r} requests a privileged container: use --backend docker")


def _given(scratch: Path | None) -> Path:
    if scratch is None:
        raise BackendError("the rootless backend needs the scratch folder, in which its root file systems are")
    return scratch
