"""The files by which orchestrator and supervisor know of each other; they lie beside the agent's world, not in it."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar


@dataclass(frozen=True)
class Layout:
    """The work directory of one run."""

    workdir: Path

    @property
    def home(self) -> Path:
        """The agent's world, all the agent is told about; removed when what it left has been collected."""
        return self.workdir / "home"

    @property
    def control(self) -> Path:
        """The files below."""
        return self.workdir / "control"

    @property
    def lock(self) -> Path:
        """Locked (flock) by whoever starts the run, then by its supervisor as long as it lives."""
        return self.workdir / "lock"

    @property
    def task(self) -> Path:
        """What the supervisor shall do (``Task``)."""
        return self.control / "task.json"

    @property
    def supervisor(self) -> Path:
        """Who supervises (``Supervisor``); written once the agent runs."""
        return self.control / "supervisor.json"

    @property
    def outcome(self) -> Path:
        """How it ended (``Outcome``); written last of all."""
        return self.control / "outcome.json"

    @property
    def stop(self) -> Path:
        """Exists when the user wants the run to end."""
        return self.control / "stop"

    @property
    def log(self) -> Path:
        """The agent's output."""
        return self.control / "agent.log"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor itself says; empty unless something is wrong with it."""
        return self.control / "supervisor.log"

    @property
    def collected(self) -> Path:
        """What the agent left, once it is over."""
        return self.workdir / "collected"

    @property
    def snapshots(self) -> Path:
        """Earlier submissions, ``SECONDS.csv`` by time since the start."""
        return self.workdir / "snapshots"


@dataclass(frozen=True)
class Task:
    """What the supervisor shall do."""

    run_id: str
    identity: str
    """Changes with the competition, the seed and the agent's files."""
    marker: str
    """Value of ``RUN_MARKER`` in the agent's environment: how to find its processes when the supervisor is gone."""
    command: list[str]
    env: dict[str, str]
    limits: dict[str, Any]
    cores: list[int] | None
    """CPU cores to run on."""


@dataclass(frozen=True)
class Supervisor:
    """A running supervisor."""

    pid: int
    born: float
    """Tells it from a later process with the same id (``processes.born``)."""
    started_at: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended; times are ISO 8601 in UTC."""

    status: str
    message: str | None
    exit_code: int | None
    started_at: str
    finished_at: str
    duration_seconds: float
    has_submission: bool


def write(path: Path, record: Task | Supervisor | Outcome) -> None:
    """Write a record so that a reader sees all of it or nothing, even after a power cut."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(path)


Record = TypeVar("Record", Task, Supervisor, Outcome)


def read(path: Path, kind: type[Record]) -> Record | None:
    """The record at ``path``; ``None`` when there is none, or it is of another version."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if set(values) != {field.name for field in fields(kind)}:
            return None
        return kind(**values)
    except (OSError, ValueError, TypeError):
        return None
