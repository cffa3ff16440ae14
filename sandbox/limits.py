"""What one run of an agent may use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

GIB = 1024**3
MIB = 1024**2
CANCEL_SECONDS = 3.0
"""Longest grace period of a run that the user stops."""


@dataclass(frozen=True)
class Limits:
    """Limits of one run; ``None`` means no limit. Written in ``agent.yaml`` below ``limits``, overridable by the
    operator.

    A plain dataclass rather than a pydantic model, so that the supervisor, of which one lives beside every running
    agent, stays small.
    """

    time_limit_seconds: float = 24 * 3600.0
    """Wall clock from the start of ``start.sh``; then SIGTERM."""
    grace_seconds: float = 10.0
    """Between SIGTERM and SIGKILL: time to finish writing a submission."""
    memory_bytes: int | None = None
    """Memory of all the agent's processes together (pages they share are counted once)."""
    cpus: int | None = None
    """Number of CPU cores; also the number of threads numerical libraries are told to use."""
    disk_bytes: int | None = None
    """Bytes on disk the agent may add to its work directory, and the size of any single file."""
    processes: int | None = 1024
    """Number of processes alive at once."""
    shm_bytes: int | None = None
    """Size of ``/dev/shm`` in containers (part of the memory); half of the memory by default."""
    gpus: int | None = None
    """Number of GPUs for this run alone, in containers."""
    snapshots: int = 100
    """Number of earlier submissions kept; of more, every second one."""
    snapshot_bytes: int = GIB
    """Bytes of all earlier submissions kept."""
    log_bytes: int = 64 * MIB
    """Kept of the agent's output: its beginning and its last part."""
    submission_bytes: int = 2 * GIB
    """A larger ``submission.csv`` counts as missing."""
    collected_bytes: int = 2 * GIB
    """Collected of ``logs/`` and of ``code/``, each; larger files are left out first come, first served."""
    collected_files: int = 10_000
    """Number of files collected of ``logs/`` and of ``code/``, each."""

    # Read by pydantic when an agent.yaml is validated: unknown names are errors there.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        """Refuse limits under which nothing can run.

        Raises:
            ValueError: a limit that is zero or negative (``grace_seconds`` may be zero).
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            allowed = value is None or value > 0 or (field.name == "grace_seconds" and value == 0)
            if not allowed or value != value:
                raise ValueError(f"{field.name} must be a positive number, not {value}")

    def override(self, **changes: Any) -> Limits:
        """These limits with those of ``changes`` that are not ``None`` in their place."""
        return dataclasses.replace(self, **{name: value for name, value in changes.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """Names and values, for JSON."""
        return dataclasses.asdict(self)
