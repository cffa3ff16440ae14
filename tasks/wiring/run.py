"""A run that this process makes, the checkpoint that it has continued from, and its usage of time and budget."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from common.progress import Meter, Share
from common.units import duration
from grading.feedback.public_scores import PublicPart
from sandbox.backend import Backend, RunSpec
from sandbox.services.run_services import RunServices
from sandbox.supervision.control import Layout
from storage.lease import Lease
from storage.runs.checkpoints import Checkpoint, Checkpoints
from storage.runs.folders import RunFolder
from storage.runs.tries import Tries
from tasks.wiring.attempts import attempt_folder
from tasks.wiring.context import RunContext
from tasks.wiring.requests import Attempt

HOME = "home.tar"
"""Name of the file with the agent's files of a checkpoint, in the folder of `Resumed`."""


@dataclass(frozen=True)
class Resumed:
    """The checkpoint that a run has continued from, with the files that were kept until then in a folder here."""

    checkpoint: Checkpoint
    folder: Path

    @property
    def snapshots(self) -> list[Path]:
        """The snapshots until the checkpoint, by the time since the first try was begun."""
        paths = (self.folder / "snapshots").glob("*.csv")
        return sorted(path for path in paths if float(path.stem) <= self.checkpoint.seconds)

    def rest_of(self, spec: RunSpec) -> RunSpec:
        """The run with the time that remains, beginning with the files of the checkpoint."""
        remaining_seconds = max(spec.limits.time_limit_seconds - self.checkpoint.seconds, 1.0)
        return replace(
            spec, limits=spec.limits.override(time_limit_seconds=remaining_seconds), resume=self.folder / HOME
        )


def join_logs(resumed: Resumed | None, log: Path, target: Path) -> None:
    """Write the log of the tries that a run continued, followed by its own one."""
    draft = target.with_name(f".{target.name}.joined")
    with draft.open("wb") as joined_log:
        if resumed is not None and (resumed.folder / "agent.log").is_file():
            joined_log.write((resumed.folder / "agent.log").read_bytes())
            after = duration(resumed.checkpoint.seconds)
            joined_log.write(f"\n[... the run continues from its checkpoint after {after} ...]\n".encode())
        if log.is_file():
            with log.open("rb") as own_log:
                shutil.copyfileobj(own_log, joined_log)
    draft.replace(target)


@dataclass(frozen=True)
class ActiveRun:
    """A run that this process makes, with its lease and its services."""

    context: RunContext
    attempt: Attempt
    """The attempt, with the key of the dataset that the agent works on."""
    spec: RunSpec
    runner: Backend
    services: RunServices
    held: Lease
    tries: Tries
    checkpoints: Checkpoints
    resumed: Resumed | None = None
    """The checkpoint that the run has continued from, if it has."""
    feedback: PublicPart | str | None = None
    """The public part of the test set, or why the run has none although it was requested; None without feedback."""
    check_marks: int = 0
    """The number of places in the competition's folder that were marked with CHECK when the run began."""

    @property
    def folder(self) -> RunFolder:
        """The folder of the run in the store."""
        return attempt_folder(self.context.store, self.attempt)

    def number(self) -> int:
        """The number of the try that is in progress."""
        return max(1, len(self.tries.read(self.attempt.key)))


def usage_meter(spec: RunSpec, services: RunServices) -> Meter:
    """A function that measures the time since the start of a run, even if it was found running, and its budget."""
    started, allowance = time.time(), services.allowance
    with contextlib.suppress(OSError):
        started = Layout(spec.workdir.absolute()).task.stat().st_mtime

    def measure() -> list[Share]:
        shares = [Share("time", max(0.0, time.time() - started), float(spec.limits.time_limit_seconds))]
        if allowance.language_models:
            spent = services.counts()
            shares += [
                Share("requests", spent["gateway_requests"], allowance.llm_requests),
                Share("tokens", spent["gateway_tokens"], allowance.llm_tokens),
                Share("dollars", spent["gateway_cost_usd"] or 0.0, allowance.llm_dollars),
            ]
        return shares

    return measure
