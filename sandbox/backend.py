"""The interface of a backend. A backend runs agents and is independent of how their runs are graded.

A run outlives the process that started it, and ``start`` is idempotent: after an orchestrator was killed, it calls
``start`` again with the same run id and work directory, and gets the run that is still in progress, or its result:

    backend = ProcessBackend()
    handle = backend.start(spec)
    try:
        result = backend.wait(handle, on_log=print)
    except KeyboardInterrupt:
        backend.stop(handle)
        raise
    ...  # store result.submission, result.logs, result.code
    backend.discard(handle)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from sandbox.definitions import Agent
from sandbox.isolation import Isolation, Network
from sandbox.limits import Limits

Status = Literal["completed", "timeout", "memory", "disk", "processes", "crashed", "cancelled", "lost"]
"""How a run ended: completed (exit code 0), at a limit (timeout, memory, disk, processes), crashed (any other exit
code), cancelled by the user, or lost: its machine or container engine ended it, which is not the agent's fault."""

Attachment = Literal["new", "running", "finished"]
"""The state that ``start`` found: no earlier run, a run in progress, or the result of a finished run."""


@dataclass(frozen=True)
class Allowance:
    """The limits on a run's services, as the agent's instructions state them; ``None`` means no limit."""

    language_models: bool = False
    """Whether the run has an LLM gateway; the next three fields limit its use."""
    llm_requests: int | None = None
    llm_tokens: int | None = None
    llm_dollars: float | None = None
    validation_calls: int | None = None
    validation_calls_per_minute: int | None = None
    scorer_calls: int | None = None
    scorer_calls_per_minute: int | None = None
    public_score_calls: int | None = None
    public_score_calls_per_minute: int | None = None


@dataclass(frozen=True)
class ServiceAddresses:
    """The addresses at which the services of a run listen, and the URLs that the agent gets."""

    sockets: Path | None = None
    """Folder for the Unix sockets ``validation.sock`` and ``gateway.sock``, which the backend forwards into the agent's
    network. ``None``: the services listen on ports of 127.0.0.1, and the URLs follow from these."""
    validation_url: str = ""
    gateway_url: str = ""


@dataclass(frozen=True)
class Allocation:
    """The slot and the GPUs that a run has on its host. See `sandbox.host.slots`."""

    gpus: tuple[str, ...] = ()
    """Ids of the GPUs that the run has to itself."""
    descriptor: int | None = None
    """The lock of the slot, for a process that outlives the orchestrator to inherit; ``None`` if another process has
    it."""
    slots: int = 1
    """Number of slots of the host, and so of the runs that share the tables of its kernel."""


@dataclass(frozen=True)
class ScorerTexts:
    """What an agent is told of the scorer: how the truth looks that it may hand in with its predictions."""

    metric: str
    """The metric, and which scores are better, in words."""
    truth: str
    """What a truth holds, in words."""
    example_name: str
    """Name of the file with an example."""
    example: str
    """Its content."""


@dataclass(frozen=True)
class PublicScores:
    """What an agent is told of the scores on public test rows."""

    metric: str
    """The metric, and which scores are better, in words."""
    share: float
    """Share of the test set that is public."""
    calls_per_day: int


@dataclass(frozen=True)
class RunSpec:
    """Everything a backend needs to run an agent once."""

    run_id: str
    """Identifies the run, together with the work directory."""
    competition_id: str
    seed: int
    agent: Agent
    data: Path
    """The competition's public directory on this machine, with description.md and the sample submission. Read-only."""
    workdir: Path
    """Directory of this run alone; created if missing. Must not lie inside the prepared dataset."""
    limits: Limits
    """The agent's own limits with the operator's settings applied: ``agent.limits.override(...)``."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables for the agent, which inherits nothing from the orchestrator."""
    sample_submission: str | None = None
    """Path of the sample submission relative to ``data``, where known; the agent sees it as SAMPLE_SUBMISSION."""
    validation_url: str | None = None
    """Base URL of the validation service as the agent reaches it; gives the agent ``validate_submission.sh``."""
    scorer: ScorerTexts | None = None
    """What the agent is told of the scorer, if it has one; needs ``scorer_url``."""
    scorer_url: str | None = None
    """Base URL of the scorer as the agent reaches it; gives the agent ``score.sh`` and an example of a truth."""
    public_scores: PublicScores | None = None
    """What the agent is told of scores on public test rows, if it can ask for them; needs ``public_score_url``."""
    public_score_url: str | None = None
    """Base URL of these scores as the agent reaches it; gives the agent ``public_score.sh``."""
    description: str | None = None
    """The text of ``data/description.md`` for this run; None to use the file in ``data``."""
    obfuscated: bool = False
    """Whether ``description`` replaces all descriptions in ``data``, and the agent is not told the competition's id."""
    allowance: Allowance = Allowance()
    """Limits on the validation service and on language models."""
    own_disk: bool = False
    """Whether the home of an agent in a container is a file system of its own, as large as its disk limit."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Additional labels for the run's containers, such as its group and store."""
    allocation: Allocation = Allocation()
    """The slot and GPUs of the run."""
    resume: Path | None = None
    """A checkpoint (`sandbox.world.checkpoint`) from which the agent continues. `limits` and `allowance` are then what
    remains."""


@dataclass(frozen=True)
class RunHandle:
    """A run that ``start`` began or found. Holds no open resource."""

    run_id: str
    workdir: Path
    backend: str
    """Name of the backend, for ``tables/runs``."""
    reference: str
    """The supervisor's process id or the container id, for messages."""
    attachment: Attachment
    log: Path
    """The agent's output. It grows while the agent runs, up to a size limit."""
    log_offset: int = 0
    """Size of the log at ``start``, so that an orchestrator that was restarted reports only new lines."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended and the files it left. The paths exist until ``discard`` and contain only regular files."""

    status: Status
    message: str | None
    """One line: why the run ended early, or why there is no submission. ``None`` if nothing went wrong."""
    exit_code: int | None
    """Exit code of the start script, or minus the signal that killed it; ``None`` if the run was ended from outside."""
    started_at: datetime
    """UTC, like ``finished_at``."""
    finished_at: datetime
    duration_seconds: float
    submission: Path | None
    """The submission, a regular file within the size limit, if there is one."""
    logs: Path
    """Directory with ``agent.log`` (the agent's output) and the files of the agent's logs folder."""
    code: Path
    """Directory with the files of the agent's code folder."""
    snapshots: Path | None = None
    """Directory with earlier submissions, named ``SECONDS.csv`` by the time since the start, if any are kept."""
    misplaced: Path | None = None
    """Directory with files that may be meant as the submission, if there is none; it need not exist."""
    final: Path | None = None
    """The file ``final.txt`` of the folder for submissions, if there is one: a small regular file."""
    image: str | None = None
    """Id of the container image; ``None`` for runs outside containers."""
    enforcement: Mapping[str, str] | None = None
    """What enforced the limits of memory, processes, disk and cores, such as ``cgroup``; ``None`` if unknown."""


@dataclass(frozen=True)
class Capabilities:
    """The abilities of a backend. `sandbox.backends` compares them with the needs of a run before it starts."""

    isolates: bool = False
    """Whether agents cannot read what the operator can read. Otherwise only trusted agents may run."""
    networks: tuple[Network, ...] = ()
    """The network policies that it enforces. None: what agents can reach is not restricted."""
    gpus: bool = False
    """Whether a run can have GPUs to itself."""
    mounts_data: bool = False
    """Whether agents read the dataset itself instead of a copy, so that it must stay as long as they run."""
    supervised: bool = False
    """Whether a process of its own enforces the limits of a run, and ends it on request, without an orchestrator."""


class Backend(Protocol):
    """Runs agents. Methods may be called from several threads, as long as no two threads use the same run.

    The class methods are about this machine and about runs that any process started. `sandbox.supervision.base` has
    what they do for most backends.
    """

    name: ClassVar[str]
    """Its name in `sandbox.backends`, on the command line and in ``tables/runs``."""
    capabilities: ClassVar[Capabilities]

    @property
    def policy(self) -> Network | None:
        """The network policy that is enforced; None if what agents can reach is not restricted."""
        ...

    @classmethod
    def create(cls, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None) -> Self:
        """A backend without runs, for the operator's choice of isolation.

        Args:
            isolation: its ``backend`` is this one.
            allowed_hosts: what agents may reach under the network policy ``allowlist``.
            scratch: a folder of this machine for what the runs of the backend share.

        Raises:
            BackendError: this machine lacks something that the backend needs.
        """
        ...

    @classmethod
    def conditions(cls, isolation: Isolation) -> dict[str, Any]:
        """The parts of the isolation that can change a result: columns of the run's record, and of its content key."""
        ...

    @classmethod
    def require_runnable(
        cls, agent: Agent, isolation: Isolation, allowed_hosts: Collection[str] = (), scratch: Path | None = None
    ) -> None:
        """Raise `BackendError` if the agent could not run on this machine."""
        ...

    @classmethod
    def is_usable(cls) -> bool:
        """Whether this machine has what the backend needs, such as a container engine."""
        ...

    @classmethod
    def is_running(cls, workdir: Path) -> bool:
        """Whether a run that does not hold the lock of its slot is running or being started. True if unknown."""
        ...

    @classmethod
    def gpus_in_use(cls) -> set[str]:
        """Ids of GPUs of this machine that runs have, also of other users, and that slots do not record."""
        ...

    @classmethod
    def request_stop(cls, workdir: Path, *, attended: bool) -> None:
        """Make a run end. Its files stay.

        Args:
            workdir: its work directory.
            attended: whether an orchestrator waits for the run.
        """
        ...

    @classmethod
    def remove(cls, workdir: Path) -> None:
        """End a run that no orchestrator waits for, and remove everything of it from this machine."""
        ...

    def service_addresses(self, spec: RunSpec) -> ServiceAddresses:
        """The addresses at which to open the services of a run, before the run is started.

        Raises:
            BackendError: another process is waiting for the run and provides its services.
        """
        ...

    def find(self, spec: RunSpec) -> Attachment:
        """The state that ``start`` would find, so that a slot of the host is taken for a new run before it starts."""
        ...

    def start(self, spec: RunSpec) -> RunHandle:
        """Make sure that the run exists: attach to it if it is in progress or finished, else start it from scratch.

        A run is also started from scratch if it was cancelled, or if its supervisor died without writing an outcome.

        Raises:
            UntrustedAgentRefused: the backend does not isolate agents, and the agent is not trusted.
            BackendError: the run cannot be started; the message is one line.
        """
        ...

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run.

        Args:
            handle: from ``start``.
            on_log: called in this thread with every new line of the agent's output, without its newline.

        Raises:
            RunLost: the run ended because of its machine, container engine or supervisor, not by itself or by a limit;
                the message says what happened. ``start`` starts the run again.
        """
        ...

    def stop(self, handle: RunHandle) -> None:
        """End the run and all its processes; a ``wait`` in another thread then returns the status "cancelled"."""
        ...

    def discard(self, handle: RunHandle) -> None:
        """Remove everything of the run from this machine, once its result is stored. Stops it if necessary."""
        ...

    def close(self) -> None:
        """Stop every run that this backend started or attached to and that has not ended yet."""
        ...

    def leave(self) -> None:
        """Leave the runs alone when this process ends, so that a later process finds them."""
        ...
