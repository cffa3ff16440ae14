"""The backstop of a run: ends its container after the time limit if no orchestrator does.

The container's own `timeout` is not enough, because the agent can stop it. The backstop is a second container, which
the agent neither sees nor can signal. It sees the processes of the machine and may only signal them, and ends the first
process of the agent's container, and with it all others. It is started before the agent and outlives the orchestrator,
so there is no moment in which an agent runs without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sandbox.docker import engines
from sandbox.docker.engine import BACKSTOP, ROLE, engine_errors
from sandbox.docker.engines import Engine
from sandbox.limits import MIB

if TYPE_CHECKING:
    from docker import DockerClient

FILES = 1024
START_SECONDS = 120
"""A container that has not been started for so long never will be: its orchestrator was killed."""

# The agent's processes are those of its control group, which they cannot leave and no other process can join, so it
# does not matter if process ids are used again. Before the agent starts, the group has processes of the runtime, so the
# first process is searched for again when it has ended. The time is the machine's uptime, which cannot be set.
_PROGRAM = """
now() { cut -d . -f 1 /proc/uptime; }
its() { grep -qs "$id" "/proc/$1/cgroup"; }
oldest() {
    for each in $(grep -ls "$id" /proc/[0-9]*/cgroup); do
        pid=${each#/proc/}; pid=${pid%/cgroup}
        born=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d ' ' -f 20)
        [ -z "$born" ] || echo "$born $pid"
    done | sort -n -k 1 -k 2 | head -n 1 | cut -d ' ' -f 2
}
id=$1; began=$(now); first=; seen=
while true; do
    [ -n "$first" ] && its "$first" || first=$(oldest)
    if [ -n "$first" ]; then
        seen=1
        [ "$(now)" -lt $((began + $2)) ] || kill -KILL "$first"
    elif [ -n "$seen" ] || [ "$(now)" -ge $((began + $3)) ]; then
        exit
    fi
    sleep 2
done
"""


def start(
    client: DockerClient, engine: Engine, container: Any, image: str, seconds: int, labels: Mapping[str, str]
) -> None:
    """Start the backstop of a container that is about to be started.

    Args:
        client: the engine.
        engine: what it is.
        container: the agent's container.
        image: an image of ours, with a shell.
        seconds: time from now to the end of the container.
        labels: labels of the run.

    Raises:
        BackendError: it cannot be started.
    """
    from docker.types import LogConfig

    with engine_errors("the run's backstop cannot be started"):
        client.containers.run(
            image,
            entrypoint=["/bin/sh", "-c", _PROGRAM, "backstop"],
            command=[container.id, str(seconds), str(START_SECONDS)],
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
            security_opt=engines.security_options(engine),
            read_only=True,
            mem_limit=16 * MIB,
            pids_limit=16,
            ulimits=engines.ulimits(engine, nofile=FILES),
            log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        )
