"""Allocate GPUs: every device belongs to at most one run, across all orchestrators of this machine."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

from sandbox.docker.engine import GPUS, engine_errors
from sandbox.errors import BackendError

if TYPE_CHECKING:
    from docker import DockerClient

WAIT_SECONDS = 5.0


def installed() -> list[str]:
    """Ids of the GPUs of this machine in Docker's format; an empty list without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def in_containers(client: DockerClient) -> set[str]:
    """Ids of the GPUs that are assigned to our running or created containers."""
    with engine_errors("the GPUs in use cannot be listed"):
        containers = client.containers.list(all=True, filters={"label": GPUS}, ignore_removed=True)
    held = (each for each in containers if each.status not in ("exited", "dead"))
    return {device for each in held for device in each.labels[GPUS].split(",") if device}


def check_count(count: int, devices: list[str] | None = None) -> None:
    """Raise `BackendError` if there are fewer than `count` GPUs among `devices`, by default those of this machine."""
    if count > 0 and count > len(devices := installed() if devices is None else devices):
        have = f"has {len(devices)}" if devices else "has none that nvidia-smi shows"
        raise BackendError(f"the run asks for {count} GPUs, and this machine {have}: change limits.gpus")


class Gpus:
    """The GPUs of one engine. Threads that request more GPUs than are free wait until enough are released."""

    def __init__(self, client: DockerClient, devices: list[str] | None = None) -> None:
        """Allocate from ``devices``, by default from all that are installed."""
        self._client = client
        self._devices = devices
        self._taken: dict[str, list[str]] = {}
        self._changed = threading.Condition()

    def acquire(self, owner: str, count: int) -> list[str]:
        """Allocate devices to a run; waits until enough are free.

        Args:
            owner: the run; a second call returns the same devices.
            count: number of devices.

        Raises:
            BackendError: the machine has fewer devices.
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

    def release(self, owner: str) -> None:
        """Free the devices of a run that has ended."""
        with self._changed:
            self._taken.pop(owner, None)
            self._changed.notify_all()
