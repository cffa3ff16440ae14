"""The network of a run: the loopback interface of its forwarder, and nothing else.

The agent's container shares the network namespace of the forwarder, a small container that has no network but loopback.
The services of a run (validation, LLM gateway, proxy) listen on Unix sockets, which are mounted into the forwarder
only. It forwards connections to ports of 127.0.0.1 to them. A run has no bridge, so it uses none of the tables that the
kernel has for all networks together, such as neighbours and tracked connections, and there is no limit of networks.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.confinement.loopback import HOSTNAME, PROGRAM, SOCKETS
from sandbox.docker import engines
from sandbox.docker.engine import FORWARDER, ROLE, engine_errors, labelled
from sandbox.docker.engines import Engine
from sandbox.errors import BackendError
from sandbox.limits import MIB

if TYPE_CHECKING:
    from docker import DockerClient

READY_SECONDS = 30.0
FILES = 1024
"""Open files of the forwarder, two for each connection. The services accept fewer connections."""

# The namespace lives as long as the container, so that the agent's network outlives a program that runs out of memory.
_PROGRAM = 'command -v python3 >&2 || exit 127; while :; do python3 -I /forward.py "$@"; sleep 0.5; done'


def start_forwarder(
    client: DockerClient, engine: Engine, name: str, image: str, user: str, sockets: Path, labels: Mapping[str, str]
) -> Any:
    """Start the run's forwarder and wait until it answers. Returns its container.

    Args:
        client: the engine.
        engine: what it is.
        name: name of the run's container.
        image: an image of ours with python3. The interpreter in the agent's image could be any program.
        user: user and group id, as UID:GID.
        sockets: the folder from `sandbox.host.folder.socket_folder`.
        labels: labels of the run.

    Raises:
        BackendError: the forwarder did not start.
    """
    from docker.types import LogConfig, Mount

    with engine_errors("the forwarder cannot be started"):
        container = client.containers.run(
            image,
            entrypoint=["/bin/sh", "-c", _PROGRAM, FORWARDER],
            command=[f"{port}=/sockets/{socket}" for port, socket in SOCKETS.items()],
            name=f"{name}-{FORWARDER}",
            labels={**labels, ROLE: FORWARDER},
            detach=True,
            mounts=[
                Mount("/sockets", str(sockets), type="bind", read_only=True),
                Mount("/forward.py", str(PROGRAM), type="bind", read_only=True),
            ],
            userns_mode="host",
            network_mode="none",
            hostname=HOSTNAME,
            use_config_proxy=False,
            working_dir="/",
            user=user,
            cap_drop=["ALL"],
            security_opt=engines.security_options(engine),
            read_only=True,
            mem_limit=128 * MIB,
            pids_limit=32,
            ulimits=engines.ulimits(engine, nofile=FILES),
            init=True,
            log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        )
        deadline = time.monotonic() + READY_SECONDS
        while b"ready" not in container.logs():
            container.reload()
            if container.status != "running" or time.monotonic() > deadline:
                line = container.logs(tail=1).decode(errors="replace").strip() or "no output"
                raise BackendError(f"the forwarder of {name} did not start ({line}): mlebench build base")
            time.sleep(0.05)
    return container


def remove(client: DockerClient, workdir: Path) -> None:
    """Remove the containers of a run, in any state."""
    from docker.errors import NotFound

    with engine_errors(f"the containers of run {workdir.name} cannot be removed"):
        containers = client.containers.list(all=True, filters=labelled(workdir=str(workdir)), ignore_removed=True)
        # The forwarder is the last: Podman removes no container whose network another one has.
        for container in sorted(containers, key=lambda each: each.labels.get(ROLE) == FORWARDER):
            with contextlib.suppress(NotFound):
                container.remove(force=True, v=True)
