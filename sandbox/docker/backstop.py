"""The backstop of a run: ends its container after the time limit if no orchestrator does.

The container's own `timeout` is not enough, because the agent can stop it. The backstop is a second container, which
the agent neither sees nor can signal. It sees the processes of the machine and may only signal them, and ends the first
process of the agent's container, and with it all others. It outlives the orchestrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import BACKSTOP, ROLE, engine_errors
from sandbox.limits import MIB

if TYPE_CHECKING:
    from docker import DockerClient

# Process ids are used again; with its start time, a process is known. Uptime cannot be set, unlike the clock.
_PROGRAM = """
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
now() { cut -d . -f 1 /proc/uptime; }
first=$(born "$1"); end=$(($(now) + $2))
while [ -n "$first" ] && [ "$(born "$1")" = "$first" ]; do
    [ "$(now)" -lt "$end" ] || kill -KILL "$1"
    sleep 2
done
"""


def start(client: DockerClient, container: Any, image: str, seconds: int, labels: Mapping[str, str]) -> None:
    """Start the backstop of a running container.

    Args:
        client: the engine.
        container: the agent's container.
        image: an image of ours, with a shell.
        seconds: time from now to the end of the container.
        labels: labels of the run.

    Raises:
        BackendError: it cannot be started.
    """
    from docker.types import LogConfig

    from sandbox.docker import seccomp

    with engine_errors("the run's backstop cannot be started"):
        container.reload()
        first = container.attrs["State"]["Pid"]
        if not first:  # it has ended already
            return
        client.containers.run(
            image,
            entrypoint=["/bin/sh", "-c", _PROGRAM, "backstop"],
            command=[str(first), str(seconds)],
            name=f"{container.name}-{BACKSTOP}",
            labels={**labels, ROLE: BACKSTOP},
            detach=True,
            pid_mode="host",
            userns_mode="host",
            network_mode="none",
            use_config_proxy=False,
            user="0:0",
            cap_drop=["ALL"],
            cap_add=["KILL"],
            security_opt=["no-new-privileges:true", seccomp.option()],
            read_only=True,
            mem_limit=16 * MIB,
            pids_limit=16,
            log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        )
