"""The files through which orchestrator and supervisor communicate. They are outside the agent's home."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from common import plain_json

if TYPE_CHECKING:  # the supervisor stays small: no pydantic at run time
    from sandbox.backend import Status


@dataclass(frozen=True)
class Layout:
    """The work directory of one run."""

    workdir: Path

    @property
    def home(self) -> Path:
        """The agent's home, the only folder that it is told about. Removed once its files have been harvested."""
        return self.workdir / "home"

    @property
    def data(self) -> Path:
        """The run's own copy of the data for containers; exists only if the agent must not see the original's path."""
        return self.workdir / "data"

    @property
    def control(self) -> Path:
        """Folder of the control files below."""
        return self.workdir / "control"

    @property
    def lock(self) -> Path:
        """File locked by the process that starts the run, and then by the run's supervisor until it ends."""
        return self.workdir / "lock"

    @property
    def task(self) -> Path:
        """The command of the run, with its environment and limits (``LaunchSpec``)."""
        return self.control / "task.json"

    @property
    def supervisor(self) -> Path:
        """The supervisor's process (``Supervisor``); written once the agent runs."""
        return self.control / "supervisor.json"

    @property
    def started(self) -> Path:
        """The time at which the run's container was started (``Started``)."""
        return self.control / "started.json"

    @property
    def outcome(self) -> Path:
        """How the run ended (``Outcome``); written last."""
        return self.control / "outcome.json"

    @property
    def stop(self) -> Path:
        """Exists if the user has asked for the run to end."""
        return self.control / "stop"

    @property
    def log(self) -> Path:
        """The agent's output."""
        return self.control / "agent.log"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's own output; empty unless something is wrong with it."""
        return self.control / "supervisor.log"

    @property
    def harvested(self) -> Path:
        """The files the agent left, once the run has ended."""
        return self.workdir / "collected"

    @property
    def snapshots(self) -> Path:
        """Earlier submissions, ``SECONDS.csv`` by time since the start."""
        return self.workdir / "snapshots"


@dataclass(frozen=True)
class LaunchSpec:
    """The command that the supervisor or the container engine runs, with its environment and limits."""

    run_id: str
    identity: str
    """Changes with the competition, the seed and the agent's files."""
    marker: str
    """Value of ``RUN_MARKER`` in the agent's environment, by which its processes are found if the supervisor is gone.
    For containers, the id of the image."""
    command: list[str]
    env: dict[str, str]
    limits: dict[str, Any]
    cores: list[int] | None
    """CPU cores to run on."""
    files: int | None = None
    """Open files of each process."""
    bubblewrap: list[str] = field(default_factory=list)
    """The program ``bwrap`` and its options, if the command runs in namespaces of its own."""
    staged: list[str] = field(default_factory=list)
    """Files and folders that are mounted for the agent's user, if that is not this user; see
    `sandbox.rootless.namespaces.become`."""
    image: str | None = None
    """Digest of the root file system."""
    enforcement: dict[str, str] = field(default_factory=dict)
    """What enforces the limits; see `sandbox.rootless.limits`."""
    cgroup: str | None = None
    """The cgroup below which the run gets one of its own, if there is one."""


@dataclass(frozen=True)
class Supervisor:
    """A running supervisor."""

    pid: int
    start_time: float
    """Distinguishes it from a later process with the same id (``common.processes.start_time``)."""
    started_at: str


@dataclass(frozen=True)
class Started:
    """The start of a container, to notice if it is started again."""

    at: str
    """ISO 8601, UTC."""
    kills: int
    """Processes of the machine that the kernel had killed for lack of memory until then."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended; times are in ISO 8601, UTC."""

    status: Status
    message: str | None
    exit_code: int | None
    started_at: str
    finished_at: str
    duration_seconds: float
    has_submission: bool


def write(path: Path, record: LaunchSpec | Supervisor | Started | Outcome) -> None:
    """Write a record atomically: a reader sees all of it or nothing, even after a power failure."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(plain_json.dumps(asdict(record), indent=1))
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(path)


Record = TypeVar("Record", LaunchSpec, Supervisor, Started, Outcome)


def read(path: Path, kind: type[Record]) -> Record | None:
    """The record at ``path``; ``None`` if there is none, or another version has written it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if set(values) != {column.name for column in fields(kind)}:
            return None
        return kind(**values)
    except (OSError, ValueError, TypeError):
        return None
