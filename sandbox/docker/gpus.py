"""Which run has which GPU: every device belongs to one run at most, those of other orchestrators included."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

from sandbox.docker.engine import GPUS, in_words
from sandbox.errors import BackendError

if TYPE_CHECKING:
    from docker import DockerClient

WAIT_SECONDS = 5.0


def installed() -> list[str]:
    """Ids of the GPUs of this machine, as Docker wants them; none without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def in_containers(client: DockerClient) -> set[str]:
    """Ids of the GPUs that running or created containers of ours have."""
    with in_words("the GPUs in use cannot be listed"):
        containers = client.containers.list(all=True, filters={"label": GPUS}, ignore_removed=True)
    held = (each for each in containers if each.status not in ("exited", "dead"))
    return {device for each in held for device in each.labels[GPUS].split(",") if device}


def check_count(count: int, devices: list[str] | None = None) -> None:
    """Raise `BackendError` if there are fewer GPUs, by default of this machine."""
    if count > 0 and count > len(devices := installed() if devices is None else devices):
        have = f"has {len(devices)}" if devices else "has none that nvidia-smi shows"
        raise BackendError(f"the run asks for {count} GPUs, and this machine {have}: change limits.gpus")


class Gpus:
    """The GPUs of one engine; threads that ask for more than are free wait for them."""

    def __init__(self, client: DockerClient, devices: list[str] | None = None) -> None:
        """Share out ``devices``, by default those installed."""
        self._client = client
        self._devices = devices
        self._taken: dict[str, list[str]] = {}
        self._changed = threading.Condition()

    def take(self, owner: str, count: int) -> list[str]:
        """Devices for a run, waiting until enough are free.

        Args:
            owner: the run; asking again gives the same devices.
            count: how many.

        Raises:
            BackendError: the machine has fewer.
        """
        if count <= 0:
            return []
        with self._changed:
            if self._devices is None:
                self._devices = installed()
            check_count(count, self._devices)
            while owner not in self._taken:
                busy = {device for devices in self._taken.values() for device in devices} | in_containers(self._client)
                free = [device for device in self._devices if device not in busy]
                if len(free) >= count:
                    self._taken[owner] = free[:count]
                else:
                    self._changed.wait(WAIT_SECONDS)
            return self._taken[owner]

    def give_back(self, owner: str) -> None:
        """The run is over."""
        with self._changed:
            self._taken.pop(owner, None)
            self._changed.notify_all()
