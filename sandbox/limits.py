"""Limits of one run: of its resources, and of its validation service."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from common.units import parse_limit

GIB = 1024**3
MIB = 1024**2
CANCEL_SECONDS = 3.0
"""Upper bound of the grace period of a run that the user stops."""


@dataclass(frozen=True)
class Limits:
    """Limits of one run; ``None`` means no limit. The field ``limits`` of ``agent.yaml``; the operator can override it.

    It is a plain dataclass rather than a pydantic model because it is imported by the supervisors. Every running agent
    has one, so they should use little memory.
    """

    time_limit_seconds: float = 24 * 3600.0
    """Wall clock time from the start of ``start.sh`` to SIGTERM."""
    grace_seconds: float = 10.0
    """Time between SIGTERM and SIGKILL, to finish writing a submission."""
    memory_bytes: int | None = None
    """Memory of all the agent's processes together; shared pages count once."""
    cpus: int | None = None
    """Number of CPU cores, and of the threads that numerical libraries are told to use."""
    disk_bytes: int | None = None
    """Bytes on disk that the agent may add to its work directory; also the largest size of a single file."""
    processes: int | None = 1024
    """Number of processes alive at once."""
    shm_bytes: int | None = None
    """Size of ``/dev/shm`` in containers, which counts as memory; half of the memory by default."""
    gpus: int | None = None
    """Number of GPUs that the run has to itself, in containers."""
    snapshots: int = 100
    """Number of earlier submissions kept; when it is exceeded, every second one is removed."""
    snapshot_bytes: int = GIB
    """Total size of the earlier submissions kept."""
    log_bytes: int = 64 * MIB
    """Bytes of the agent's output that are kept: its beginning and its end."""
    submission_bytes: int = 2 * GIB
    """A larger ``submission.csv`` counts as missing."""
    collected_bytes: int = 2 * GIB
    """Bytes of ``logs/`` and of ``code/``, each, that are kept; files that exceed it are left out."""
    collected_files: int = 10_000
    """Number of files of ``logs/`` and of ``code/``, each, that are kept."""
    free_bytes: int = GIB
    """Free space on the disk of the work directory, at most a tenth of the disk, below which runs are ended, those that
    use most of their own limits first."""

    # Read by pydantic when an agent.yaml is validated: unknown names are errors there.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        """Validate the values.

        Raises:
            ValueError: a limit is zero or negative (``grace_seconds`` may be zero).
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            allowed = value is None or value > 0 or (field.name == "grace_seconds" and value == 0)
            if not allowed or value != value:
                raise ValueError(f"{field.name} must be a positive number, not {value}")

    def override(self, **changes: Any) -> Limits:
        """A copy with ``changes`` applied, except for those that are ``None``."""
        return dataclasses.replace(self, **{name: value for name, value in changes.items() if value is not None})

    def capped(self, caps: Limits) -> Limits:
        """A copy in which every limit is the smaller one of this and `caps`; of the free space the larger one."""
        smaller: dict[str, Any] = {
            field.name: min(
                (value for value in (getattr(self, field.name), getattr(caps, field.name)) if value is not None),
                default=None,
            )
            for field in dataclasses.fields(self)
        }
        smaller["free_bytes"] = max(self.free_bytes, caps.free_bytes)
        if smaller["shm_bytes"] and smaller["memory_bytes"]:
            smaller["shm_bytes"] = min(smaller["shm_bytes"], smaller["memory_bytes"])
        return Limits(**smaller)

    def as_dict(self) -> dict[str, Any]:
        """Names and values as JSON types."""
        return dataclasses.asdict(self)


def read_limits(fields: Any) -> Any:
    """The field ``limits`` of an ``agent.yaml`` with sizes and times as numbers; what is no limit is left as it is.

    Raises:
        ValueError: a limit cannot be understood, or is less than any agent needs.
    """
    if not isinstance(fields, Mapping):
        return fields
    limits = dict(fields)
    for name in {field.name for field in dataclasses.fields(Limits)} & set(limits):
        if limits[name] is not None and (name.endswith(("_bytes", "_seconds")) or name == "cpus"):
            try:
                limits[name] = parse_limit(name, limits[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return limits


@dataclass(frozen=True)
class ValidationLimits:
    """Limits of an endpoint of the validation service: how often an agent may call it, and with files of what size."""

    calls: int = 2000
    calls_per_minute: int = 20
    submission_bytes: int = 2 * GIB
