"""The network of a run. Only the agent's container and its forwarder are connected to it.

The host has no address on an internal network, so none of its services can be reached from it. The services of a run
(validation, LLM gateway, allowlist proxy) listen on Unix sockets. The forwarder, a small container with these sockets
mounted, forwards connections to the host name ``services``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import FORWARDER, ROLE, engine_errors, labelled
from sandbox.errors import BackendError
from sandbox.host.folder import private
from sandbox.isolation import Network
from sandbox.limits import MIB

if TYPE_CHECKING:
    from docker import DockerClient

ALIAS = "services"
PROXIED: tuple[Network, ...] = ("allowlist", "open")
"""Policies under which agents reach hosts outside through a proxy."""
VALIDATION_PORT, GATEWAY_PORT, PROXY_PORT = 5000, 8000, 3128
PROXY_SOCKET = "proxy.sock"
SOCKETS = {VALIDATION_PORT: "validation.sock", GATEWAY_PORT: "gateway.sock", PROXY_PORT: PROXY_SOCKET}
NO_HOST_ADDRESS = "com.docker.network.bridge.inhibit_ipv4"
UNROUTABLE = "192.0.2.1"
"""Address of a name server that does not exist. With a real one, engines before 2024 would resolve a container's
queries on the host."""
READY_SECONDS = 30.0


def socket_folder(workdir: Path) -> Path:
    """The directory for a run's sockets, the same at every call; created if missing.

    It is not in the work directory, whose path may be too long for a socket.

    Raises:
        BackendError: the directory above it belongs to another user, or is open to others.
    """
    base = private(Path(tempfile.gettempdir()) / f"mlebench-{os.getuid()}")
    folder = base / hashlib.blake2b(os.fsencode(workdir.absolute()), digest_size=8).hexdigest()
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)  # whatever the umask: the container has another user
    return folder


def create(client: DockerClient, name: str, policy: Network, labels: Mapping[str, str]) -> Any:
    """Create the run's network. Raises `BackendError` if the engine has no addresses left."""
    inside = policy != "private"
    with engine_errors(f"network {name} cannot be created"):
        return client.networks.create(
            name,
            driver="bridge",
            internal=inside,
            labels=dict(labels),
            options={NO_HOST_ADDRESS: "true"} if inside else {"com.docker.network.bridge.enable_icc": "true"},
        )


def start_forwarder(
    client: DockerClient, network: Any, image: str, user: str, sockets: Path, labels: Mapping[str, str]
) -> None:
    """Start the run's forwarder and wait until it answers.

    Args:
        client: the engine.
        network: the run's network.
        image: an image of ours with python3, and not the agent's, whose interpreter could be anything.
        user: user and group id, as UID:GID.
        sockets: the folder from `socket_folder`.
        labels: labels of the run.

    Raises:
        BackendError: the forwarder did not start.
    """
    from docker.types import LogConfig, Mount

    from sandbox.docker import seccomp

    script = Path(__file__).with_name("forward.py")
    with engine_errors("the forwarder cannot be started"):
        container = client.containers.create(
            image,
            entrypoint=["python3", "-I", "/forward.py"],
            command=[f"{port}=/sockets/{socket}" for port, socket in SOCKETS.items()],
            name=f"{network.name}-{FORWARDER}",
            labels={**labels, ROLE: FORWARDER},
            mounts=[
                Mount("/sockets", str(sockets), type="bind", read_only=True),
                Mount("/forward.py", str(script), type="bind", read_only=True),
            ],
            network_mode="none",
            use_config_proxy=False,
            working_dir="/",
            user=user,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true", seccomp.option()],
            sysctls={"net.ipv6.conf.all.disable_ipv6": "1"},
            dns=[UNROUTABLE],
            read_only=True,
            mem_limit=128 * MIB,
            pids_limit=32,
            init=True,
            restart_policy={"Name": "on-failure", "MaximumRetryCount": 5},
            log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        )
        client.networks.get("none").disconnect(container)
        network.connect(container, aliases=[ALIAS])
        container.start()
        give_up = time.monotonic() + READY_SECONDS
        while b"ready" not in container.logs():
            container.reload()
            if container.status not in ("running", "created", "restarting") or time.monotonic() > give_up:
                line = container.logs(tail=1).decode(errors="replace").strip() or "no output"
                raise BackendError(f"the forwarder of {network.name} did not start ({line}): mlebench build base")
            time.sleep(0.05)


def remove(client: DockerClient, workdir: Path) -> None:
    """Remove the containers and the network of a run, in any state."""
    from docker.errors import APIError, NotFound

    of_run = labelled(workdir=str(workdir))
    with engine_errors(f"the containers and network of run {workdir.name} cannot be removed"):
        for container in client.containers.list(all=True, filters=of_run, ignore_removed=True):
            with contextlib.suppress(NotFound):
                container.remove(force=True, v=True)
        for network in client.networks.list(filters=of_run):
            with contextlib.suppress(NotFound, APIError):
                network.remove()
