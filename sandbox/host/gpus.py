"""The GPUs of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from sandbox.errors import BackendError


def installed() -> list[str]:
    """Ids of the GPUs of this machine in Docker's format; an empty list without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in completed.stdout.splitlines() if line.strip()]


def check_count(count: int, devices: Sequence[str] | None = None) -> None:
    """Raise `BackendError` if there are fewer than `count` GPUs among `devices`, by default those of this machine."""
    if count > 0 and count > len(devices := installed() if devices is None else devices):
        have = f"has {len(devices)}" if devices else "has none that nvidia-smi shows"
        raise BackendError(f"the run asks for {count} GPUs, and this machine {have}: change limits.gpus")
