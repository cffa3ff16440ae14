"""The interface of a backend: what runs an agent, knowing nothing of how the run is judged.

Runs are supervised, not owned. ``start`` only makes sure that the run exists, so an orchestrator that was killed calls
``start`` again with the same run id and work directory, and gets the run that is still going, or the result that waits
for it:

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from sandbox.agent import Agent
from sandbox.limits import Limits

Status = Literal["completed", "timeout", "memory", "disk", "processes", "crashed", "cancelled"]
"""How a run ended: by itself with exit code 0; at one of its limits; by itself otherwise; or stopped by the user."""

Attachment = Literal["new", "running", "finished"]
"""What ``start`` found: nothing, the run still going, or its result."""


@dataclass(frozen=True)
class Allowance:
    """What a run may ask of the services beside it, to be told to the agent; ``None`` means no limit."""

    language_models: bool = False
    """Whether there is a gateway; the next three are its."""
    llm_requests: int | None = None
    llm_tokens: int | None = None
    llm_dollars: float | None = None
    validation_calls: int | None = None
    validation_calls_per_minute: int | None = None


@dataclass(frozen=True)
class RunSpec:
    """All a backend needs to run an agent once."""

    run_id: str
    """Names the run everywhere; the same id and work directory mean the same run."""
    competition_id: str
    seed: int
    agent: Agent
    data: Path
    """The competition's public directory on this machine (with description.md and the sample submission). Never written
    to."""
    workdir: Path
    """Belongs to this run alone; created if missing. Must not lie in the prepared dataset."""
    limits: Limits
    """Limits of this run: the agent's own, ``agent.limits.override(...)`` by the operator's settings."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables for the agent; nothing is inherited from the orchestrator."""
    sample_submission: str | None = None
    """Path of the sample submission relative to ``data``, where known; the agent sees it as SAMPLE_SUBMISSION."""
    validation_url: str | None = None
    """Base URL of the validation service as the agent reaches it; gives the agent ``validate_submission.sh``."""
    description: str | None = None
    """What the agent reads in place of ``data/description.md``; it is then not told the competition's id either."""
    allowance: Allowance = Allowance()
    """What it may ask of the validation service and of language models."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What else to find the run by, such as its group and store; containers carry it."""


@dataclass(frozen=True)
class RunHandle:
    """A run that ``start`` began or found; cheap to keep, refers to no open resource."""

    run_id: str
    workdir: Path
    backend: str
    """Name of the backend, for ``tables/runs``."""
    reference: str
    """What the backend finds the run by: process id and start time, container id."""
    attachment: Attachment
    log: Path
    """The agent's output while it runs (grows; capped)."""
    log_offset: int = 0
    """Size of the log at ``start``: an orchestrator that came back reports what is new only."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended and what it left. The paths stay until ``discard``; what they hold is regular files only."""

    status: Status
    message: str | None
    """One line for people: why it ended early, or why there is no submission. ``None`` when all went well."""
    exit_code: int | None
    """Of the start script; negative is the signal that ended it; ``None`` where it never ended by itself."""
    started_at: datetime
    """UTC, as ``finished_at``."""
    finished_at: datetime
    duration_seconds: float
    submission: Path | None
    """The submission, a regular file within the size limit; ``None`` when there is none."""
    logs: Path
    """Directory with ``agent.log`` (the agent's output) and what the agent wrote to its logs folder."""
    code: Path
    """Directory with what the agent wrote to its code folder."""
    snapshots: Path | None = None
    """Directory with earlier submissions, ``SECONDS.csv`` by time since the start; ``None`` where none are kept."""
    image: str | None = None
    """Id of the image it ran in; ``None`` outside containers."""


class Backend(Protocol):
    """Runs agents. Methods may be called from several threads, each with runs of its own."""

    name: str

    def start(self, spec: RunSpec) -> RunHandle:
        """Make sure that the run exists: attach to it if it is going or has finished, else begin it in a clean world.

        A run that was cancelled begins anew; so does one whose supervisor died without an outcome.

        Raises:
            UntrustedAgentRefused: the backend does not isolate and the agent is not trusted.
            BackendError: the run cannot be started; one line says why.
        """
        ...

    def wait(self, handle: RunHandle, on_log: Callable[[str], None] | None = None) -> RunResult:
        """Wait for the end of the run.

        Args:
            handle: from ``start``.
            on_log: called in this thread with every line of the agent's output (without the newline) as it comes.

        Raises:
            RunLost: the supervisor is gone without an outcome; ``start`` begins the run anew.
        """
        ...

    def stop(self, handle: RunHandle) -> None:
        """End the run and everything it started; a ``wait`` in another thread then returns status "cancelled"."""
        ...

    def discard(self, handle: RunHandle) -> None:
        """Remove all the run left on this machine, once its result is stored. Stops it if need be."""
        ...

    def close(self) -> None:
        """Stop every run this backend started or attached to and did not see the end of."""
        ...
