"""A run that this process makes, and storing what is left of it when it has ended."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import names
from common.causes import explain
from common.machine import provenance
from common.settings import get_settings
from common.units import counted
from competitions.editions import VERSIONS
from sandbox.backend import Backend, RunHandle, RunResult, RunSpec
from sandbox.services.run_services import RunServices
from sandbox.trajectory.files import write_trajectory
from storage.lease import Lease
from storage.runs.checkpoints import Checkpoints
from storage.runs.folders import RunFolder
from storage.runs.live import remove_pieces
from storage.runs.publish import publish
from storage.runs.records import RunRecord
from tasks.wiring import scratch
from tasks.wiring.requests import Attempt
from tasks.wiring.resuming import Resumed, joined
from tasks.wiring.stores import open_store
from tasks.wiring.tries import FILE, Tries, Try


@dataclass(frozen=True)
class Making:
    """A run that this process makes: under its lease, with its services beside it."""

    attempt: Attempt
    """With the key of the dataset that the agent works on."""
    spec: RunSpec
    runner: Backend
    services: RunServices
    held: Lease
    tries: Tries
    checkpoints: Checkpoints
    resumed: Resumed | None = None
    """The checkpoint that the run has continued from, if it has."""

    def number(self) -> int:
        """The number of the try that is in progress."""
        return max(1, len(self.tries.read(self.attempt.key)))


_logger = logging.getLogger(__name__)
_LONGEST_TRY = "try-0123456789"


def run_folder(attempt: Attempt) -> RunFolder:
    """The folder in the store with the files of an attempt."""
    request = attempt.request
    return RunFolder(open_store(request.store), request.run_group, attempt.competition_id, attempt.seed)


def keep(making: Making, handle: RunHandle, result: RunResult, number: int) -> None:
    """Store the files and, last, the record of a run that has ended in its `number`-th try.

    Raises:
        LeaseLost: another process has taken over the run. Nothing was stored.
    """
    spec, attempt, services, resumed = making.spec, making.attempt, making.services, making.resumed
    request = attempt.request
    result = joined(resumed, result, spec.limits.snapshots)
    services.close()  # completes the logs of the services, which are stored below
    files = services.files()
    files |= _trajectory(files, spec)
    if history := making.tries.content():
        (spec.workdir / FILE).write_bytes(history)
        files[FILE] = spec.workdir / FILE
    if result.submission is not None:
        files["submission.csv"] = result.submission
    left, dropped = _left_files(run_folder(attempt), result)
    files |= left
    dropped_note = f"{counted(dropped, 'file')} left out, with names too long for the store" if dropped else None
    conditions: dict[str, Any] = {
        **request.isolation.conditions(),
        **({"obfuscated": True} if spec.obfuscated else {}),
        **({"knowledge_cutoff": spec.agent.knowledge_cutoff} if spec.agent.knowledge_cutoff else {}),
        **({"image": spec.agent.image_name, "image_digest": result.image} if result.image else {}),
        **{name: getattr(spec.limits, name) for name in ("cpus", "memory_bytes", "disk_bytes", "gpus")},
        **services.counts(),
        "tries": number,
        **({"resumed": resumed.checkpoint.resumed + 1} if resumed else {}),
        "host": get_settings().host_name,
        **provenance(),
    }
    record = RunRecord(
        key=attempt.key,
        run_group=request.run_group,
        run_id=spec.run_id,
        competition_id=spec.competition_id,
        seed=spec.seed,
        agent=spec.agent.full_name,
        edition=request.edition,
        backend=making.runner.name,
        status=result.status,
        message="; ".join(filter(None, [result.message, dropped_note])) or None,
        exit_code=result.exit_code,
        started_at=result.started_at,
        finished_at=result.finished_at,
        duration_seconds=result.duration_seconds,
        submission_exists=result.submission is not None,
        time_limit_seconds=float(spec.limits.time_limit_seconds),
        code_fingerprint=spec.agent.fingerprint(),
        dataset_key=attempt.dataset_key,
        edition_version=VERSIONS[request.edition],
        **conditions,
    )
    scratch.note(spec.workdir, attempt)
    publish(run_folder(attempt), record, files, making.held, get_settings().ledger_key.get_secret_value())
    remove_pieces(run_folder(attempt))
    making.checkpoints.remove()
    making.runner.discard(handle)


def ending(making: Making, result: RunResult) -> str:
    """How a run ended, in words."""
    validations = counted(making.services.counts()["validation_calls"], "validation")
    left = "" if result.submission is not None else ", no submission"
    return f"{result.status} after {result.duration_seconds:.0f} s, {validations}{left}"


def _trajectory(journals: dict[str, Path], spec: RunSpec) -> dict[str, Path]:
    """The trajectory of the run, if it asked a language model, by the names of its files."""
    try:
        return write_trajectory(
            journals, spec.workdir, session=spec.run_id, agent=spec.agent.full_name, version=spec.agent.fingerprint()
        )
    except Exception as error:  # made of what an agent and a provider wrote; a run is never lost for a view of it
        _logger.warning("run %s has no trajectory: %s", spec.run_id, explain(error))
        return {}


def _left_files(folder: RunFolder, result: RunResult) -> tuple[dict[str, Path], int]:
    """The files that an agent left, by their paths in the run's folder, and how many no store can have there."""
    files: dict[str, Path] = {}
    dropped = 0
    for part in ("logs", "code", "snapshots"):
        left: Path | None = getattr(result, part)
        for path in sorted(left.rglob("*")) if left is not None else ():
            if not path.is_file() or path.is_symlink():
                continue
            name = f"{part}/{path.relative_to(left).as_posix()}"  # type: ignore[arg-type]
            if names.problem(name) or len(f"{folder.url}/{_LONGEST_TRY}/{name}".encode()) > names.KEY_BYTES:
                dropped += 1
            else:
                files[name] = path
    return files, dropped


def given_up(spec: RunSpec, tries: list[Try]) -> RunResult:
    """The result of a run that was lost in its last try, too. It has no files."""
    nothing = spec.workdir / "nothing"
    nothing.mkdir(exist_ok=True)
    reasons = "; ".join(f"try {number} on {each.host}: {each.lost}" for number, each in enumerate(tries, 1))
    began, now = datetime.fromisoformat(tries[-1].began_at), datetime.now(UTC)
    return RunResult(
        status="lost",
        message=f"lost {len(tries)} times and given up ({reasons}): see whether the agent overloads its machine",
        exit_code=None,
        started_at=began,
        finished_at=now,
        duration_seconds=(now - began).total_seconds(),
        submission=None,
        logs=nothing,
        code=nothing,
    )
