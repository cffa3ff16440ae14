"""The backends that there are: those of this project, and those that installed distributions register.

A distribution registers a class that implements `sandbox.backend.Backend` as an entry point:

    [project.entry-points."mlebench.backends"]
    firecracker = "my_package.backend:FirecrackerBackend"

Backends are imported when they are first used, because some need heavy libraries.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from common.errors import close_matches
from sandbox.backend import Backend
from sandbox.definitions import Agent
from sandbox.errors import BackendError, UntrustedAgentRefused
from sandbox.isolation import Isolation, Network

BUILT_IN = {
    "process": "sandbox.process.backend:ProcessBackend",
    "docker": "sandbox.docker.backend:DockerBackend",
    "rootless": "sandbox.rootless.backend:RootlessBackend",
}
GROUP = "mlebench.backends"
_loaded: dict[str, type[Backend]] = {}


def names() -> list[str]:
    """The names of all backends, those of this project first."""
    return [*BUILT_IN, *sorted(_registered().keys() - BUILT_IN.keys())]


def load(name: str) -> type[Backend]:
    """The class of a backend.

    Raises:
        BackendError: there is none of that name, or it cannot be imported.
    """
    if name not in _loaded:
        _loaded[name] = _import(name)
    return _loaded[name]


def loaded() -> list[type[Backend]]:
    """The backends that this process has used."""
    return list(_loaded.values())


def usable() -> frozenset[str]:
    """The names of the backends that this machine can run agents with."""
    return frozenset(name for name in names() if _is_usable(name))


def policy(isolation: Isolation) -> Network | None:
    """The network policy that the backend enforces; None if it does not restrict what agents can reach."""
    return isolation.network if load(isolation.backend).capabilities.networks else None


def conditions(isolation: Isolation) -> dict[str, Any]:
    """The parts of the isolation that can change a result; see `Backend.conditions`."""
    return load(isolation.backend).conditions(isolation)


def require_supported(agent: Agent, isolation: Isolation) -> None:
    """Require that the backend has the capabilities that the run asks for. It may be that of another machine.

    Raises:
        UntrustedAgentRefused: the backend does not isolate agents, and the agent is not trusted.
        BackendError: it lacks another capability.
    """
    name, capabilities = isolation.backend, load(isolation.backend).capabilities
    if not (capabilities.isolates or agent.trusted or isolation.allow_untrusted):
        raise UntrustedAgentRefused(_untrusted(agent))
    if capabilities.networks and isolation.network not in capabilities.networks:
        have = ", ".join(capabilities.networks)
        raise BackendError(f"the {name} backend has no network policy {isolation.network!r}: use --network {have}")
    if agent.limits.gpus and not capabilities.gpus:
        raise BackendError(f"agent {agent.name!r} asks for GPUs, and the {name} backend gives none: change limits.gpus")


def require_runnable(
    agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None
) -> None:
    """Require, before anything is prepared, that the agent can run on this machine. Raises `BackendError`."""
    require_supported(agent, isolation)
    load(isolation.backend).require_runnable(agent, isolation, allowed_hosts, scratch)


def is_running(name: str, workdir: Path) -> bool:
    """The answer of `Backend.is_running`; True for a backend that cannot be loaded."""
    try:
        return load(name).is_running(workdir)
    except BackendError:
        return True


def gpus_in_use() -> set[str]:
    """GPUs that the backends know to be in use."""
    devices: set[str] = set()
    for name in names():
        with contextlib.suppress(BackendError):
            devices |= load(name).gpus_in_use()
    return devices


@cache
def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _import(name: str) -> type[Backend]:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return cast("type[Backend]", getattr(import_module(module), attribute))
    point = _registered().get(name)
    if point is None:
        raise BackendError(f"no backend {name!r}: known are {', '.join(names())}.{close_matches(name, names())}")
    try:
        return cast("type[Backend]", point.load())
    except Exception as error:
        origin = f" of {point.dist.name}" if point.dist else ""
        raise BackendError(f"backend {name!r}{origin} cannot be imported ({error}): repair or remove it") from error


def _is_usable(name: str) -> bool:
    try:
        return load(name).is_usable()
    except BackendError:  # it cannot be imported
        return False


def _untrusted(agent: Agent) -> str:
    message = f"agent {agent.name!r} is not trusted and would run without isolation: use --backend docker or rootless"
    if agent.claims_trust:
        return (
            f"{message}, or, if it is your own, trust its folder with MLEBENCH_AGENT_DIRS={agent.folder} (elsewhere "
            "`trusted: true` in agent.yaml is ignored)"
        )
    return f"{message}, or accept that with --allow-untrusted"
