"""The runs and GPUs that containers have on a host, for `sandbox.host.slots`. Connects to the engine at first use."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.docker.engine import GPUS, EngineUnreachable, connect, engine_errors, parse_time
from sandbox.docker.runs import find

if TYPE_CHECKING:
    from docker import DockerClient

START_SECONDS = 120.0
"""A container that has not been started for so long after its creation never will be: its orchestrator was killed."""


class Holdings:
    """The engine's side of slots: which runs and GPUs its containers have."""

    def __init__(self, client: DockerClient | None = None) -> None:
        """Ask the engine of a client, by default of the environment."""
        self._client = client

    def runs(self, workdir: Path) -> bool:
        """Whether the container of a run is running or being started. True if the engine cannot be asked."""
        try:
            container = find(self._engine(), workdir)
        except EngineUnreachable:
            return True
        return container is not None and _holds(container)

    def gpus(self) -> set[str]:
        """GPUs that are assigned to containers of runs, also of other users; none if there is no engine."""
        try:
            client = self._engine()
            with engine_errors("the GPUs in use cannot be listed"):
                containers = client.containers.list(all=True, filters={"label": GPUS}, ignore_removed=True)
        except EngineUnreachable:
            return set()
        return {
            device
            for container in containers
            if _holds(container)
            for device in container.labels[GPUS].split(",")
            if device
        }

    def _engine(self) -> DockerClient:
        self._client = self._client or connect()
        return self._client


@cache
def holdings() -> Holdings:
    """The holdings on the engine that the environment names."""
    return Holdings()


def _holds(container: Any) -> bool:
    """Whether a container is running or being started."""
    if container.status == "created":
        created = parse_time(container.attrs["Created"])
        return (datetime.now(UTC) - created).total_seconds() < START_SECONDS
    return container.status not in ("exited", "dead")
