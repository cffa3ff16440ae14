"""Check that an agent can run in a container on this machine, before anything is prepared."""

from __future__ import annotations

from collections.abc import Collection

from sandbox.definitions import BASE_IMAGE, Agent
from sandbox.docker.containers import check_runtime, find_image
from sandbox.docker.engine import connect
from sandbox.docker.proxy import is_allowed
from sandbox.errors import BackendError
from sandbox.host.gpus import check_count
from sandbox.isolation import Isolation


def require_runnable(agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = ()) -> None:
    """Raise `BackendError` for the first requirement that is not met: permissions, engine, runtime, image or GPUs."""
    refuse_privileged(agent, allowed=isolation.allow_privileged)
    refused = [host for host in agent.hosts if not is_allowed(host, allowed_hosts)]
    if isolation.network == "allowlist" and refused:
        raise BackendError(
            f"agent {agent.name!r} requests access to {', '.join(refused)}: add hosts to MLEBENCH_ALLOWED_HOSTS to "
            "allow this"
        )
    client = connect()
    check_runtime(client, isolation.runtime)
    find_image(client, agent.image_name, agent.name)
    find_image(client, BASE_IMAGE, "base")  # the run's forwarder and backstop run in it
    check_count(agent.limits.gpus or 0)


def refuse_privileged(agent: Agent, *, allowed: bool) -> None:
    """Raise `BackendError` if the agent needs a privileged container and the operator does not allow that."""
    if agent.privileged and not allowed:
        raise BackendError(
            f"agent {agent.name!r} requests a privileged container, which can take over this machine: "
            "allow it with --allow-privileged, or remove `privileged` and use a runtime such as sysbox-runc"
        )
