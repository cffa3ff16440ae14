"""Storing the files of a run that has ended, and removing its folder from the scratch disk.

A run's folder is removed after its record is written. If the orchestrator is killed in between, the folder is
left over, since the run counts as finished. `attempt.json` in the folder, written before the record, names the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from common import names
from common.causes import explain
from common.locks import locked
from common.machine import provenance
from common.settings import get_settings
from common.units import counted, duration
from competitions.editions import VERSIONS
from grading.conditions import SWITCHES
from grading.feedback.public_scores import FINAL
from sandbox import backends
from sandbox.backend import RunHandle, RunResult, RunSpec
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.supervision import control
from sandbox.trajectory.files import write_trajectory
from sandbox.world.files import remove_tree
from storage.runs.folders import RunFolder
from storage.runs.live import remove_pieces
from storage.runs.publish import publish
from storage.runs.records import RunRecord
from storage.runs.tries import FILE, Try
from storage.store import Store
from tasks.wiring import feedback
from tasks.wiring.attempts import attempt_folder
from tasks.wiring.requests import Attempt
from tasks.wiring.run import ActiveRun, Resumed, join_logs

_logger = logging.getLogger(__name__)
_ATTEMPT_FILE = "attempt.json"
_LONGEST_TRY_FOLDER = "try-0123456789"


def store_run(run: ActiveRun, handle: RunHandle, result: RunResult, number: int) -> str:
    """Store the files and, last, the record of a run that has ended in its `number`-th try; returns how it ended.

    Raises:
        LeaseLost: another process has taken over the run. Nothing was stored.
    """
    spec, attempt, services, resumed = run.spec, run.attempt, run.services, run.resumed
    request = attempt.request
    result = _joined(resumed, result, spec.limits.snapshots)
    services.close()  # completes the logs of the services, which are stored below
    files = services.files()
    files |= _trajectory(files, spec)
    if history := run.tries.content():
        (spec.workdir / FILE).write_bytes(history)
        files[FILE] = spec.workdir / FILE
    if result.submission is not None:
        files["submission.csv"] = result.submission
    chosen = feedback.chosen(run.feedback, spec.workdir, result)
    files |= chosen.files
    left_files, dropped = _left_files(run.folder, result)
    files |= left_files
    dropped_note = f"{counted(dropped, 'file')} left out, with names too long for the store" if dropped else None
    conditions: dict[str, Any] = {
        **backends.conditions(request.isolation),
        "backend": run.runner.name,
        **{name: True for name in SWITCHES if getattr(request, name) is True},
        **(request.split.model_dump() if request.split else {}),
        **({"knowledge_cutoff": spec.agent.knowledge_cutoff} if spec.agent.knowledge_cutoff else {}),
        **({"image": spec.agent.image_name, "image_digest": result.image} if result.image else {}),
        **{name: getattr(spec.limits, name) for name in ("cpus", "memory_bytes", "disk_bytes", "gpus")},
        **({"enforcement": _pairs(result.enforcement)} if result.enforcement else {}),
        **services.counts(),
        **chosen.conditions,
        **({"check_marks": run.check_marks} if run.check_marks else {}),
        "tries": number,
        **({"resumed": resumed.checkpoint.resumed + 1} if resumed else {}),
        "host": run.context.settings.host_name,
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
        status=result.status,
        message="; ".join(filter(None, [result.message, dropped_note, chosen.note])) or None,
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
    _note_attempt(spec.workdir, attempt)
    publish(run.folder, record, files, run.held, run.context.settings.ledger_key.get_secret_value())
    remove_pieces(run.folder)
    run.checkpoints.remove()
    run.runner.discard(handle)
    return _end_in_words(result, services.counts(), record.message or "")


def _pairs(values: Mapping[str, str]) -> str:
    """Names and values as a text."""
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def _joined(resumed: Resumed | None, result: RunResult, max_snapshots: int) -> RunResult:
    """The result of a run that has ended, including the log, snapshots and time of the tries that it continued."""
    if resumed is None:
        return result
    earlier_seconds = resumed.checkpoint.seconds
    join_logs(resumed, result.logs / "agent.log", result.logs / "agent.log")
    snapshots = resumed.folder / "joined"
    if not snapshots.exists():
        _join_snapshots(resumed, result.snapshots, snapshots, max_snapshots)
    message = f"{result.message}; it was resumed after {duration(earlier_seconds)}" if result.message else None
    began = datetime.fromisoformat(resumed.checkpoint.began_at)
    return replace(
        result,
        message=message,
        started_at=min(began, result.finished_at - timedelta(seconds=result.duration_seconds)),
        duration_seconds=earlier_seconds + result.duration_seconds,
        snapshots=snapshots,
    )


def _join_snapshots(resumed: Resumed, own_snapshots: Path | None, target: Path, max_snapshots: int) -> None:
    """Link the snapshots of all tries into a folder, named by the time since the first began."""
    earlier_seconds = resumed.checkpoint.seconds
    snapshots = [(float(path.stem), path) for path in resumed.snapshots]
    snapshots += [
        (float(path.stem) + earlier_seconds, path) for path in (own_snapshots.glob("*.csv") if own_snapshots else ())
    ]
    snapshots.sort()
    while len(snapshots) > max_snapshots > 1:
        snapshots = [*snapshots[:-1:2], snapshots[-1]]
    draft, last_digest = target.with_name("joining"), ""
    remove_tree(draft)
    draft.mkdir()
    for seconds, path in snapshots:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != last_digest:  # the first snapshot of a continued try equals the last one of the try before
            shutil.copyfile(path, draft / f"{seconds:.1f}.csv")
            last_digest = digest
    draft.replace(target)


def _end_in_words(result: RunResult, counts: Mapping[str, Any], message: str) -> str:
    calls = counted(counts["validation_calls"], "validation")
    if "scorer_calls" in counts:
        calls += f", {counted(counts['scorer_calls'], 'call')} of the scorer"
    if "public_score_calls" in counts:
        calls += f", {counted(counts['public_score_calls'], 'request')} for public scores"
    submission_note = "" if result.submission is not None else ", no submission"
    final_note = f", {FINAL} was ignored" if f"{FINAL} is ignored" in message else ""
    return f"{result.status} after {result.duration_seconds:.0f} s, {calls}{submission_note}{final_note}"


def _trajectory(journals: dict[str, Path], spec: RunSpec) -> dict[str, Path]:
    """The trajectory of the run, if it asked a language model, by the names of its files."""
    try:
        return write_trajectory(
            journals, spec.workdir, session=spec.run_id, agent=spec.agent.full_name, version=spec.agent.fingerprint()
        )
    except Exception as error:  # texts of an agent and a provider may be invalid, which must not fail the run
        _logger.warning("run %s has no trajectory: %s", spec.run_id, explain(error))
        return {}


def _left_files(folder: RunFolder, result: RunResult) -> tuple[dict[str, Path], int]:
    """The files that an agent left, by path in the run's folder, and the number of those whose names no store takes."""
    files: dict[str, Path] = {}
    dropped = 0
    for part in ("logs", "code", "snapshots", "misplaced"):
        part_folder: Path | None = getattr(result, part)
        for path in sorted(part_folder.rglob("*")) if part_folder is not None else ():
            if not path.is_file() or path.is_symlink():
                continue
            name = f"{part}/{path.relative_to(part_folder).as_posix()}"  # type: ignore[arg-type]
            if names.problem(name) or len(f"{folder.url}/{_LONGEST_TRY_FOLDER}/{name}".encode()) > names.KEY_BYTES:
                dropped += 1
            else:
                files[name] = path
    return files, dropped


def lost_result(spec: RunSpec, tries: list[Try]) -> RunResult:
    """The result of a run that was lost in all of its tries. It has no files."""
    empty_folder = spec.workdir / "nothing"
    empty_folder.mkdir(exist_ok=True)
    reasons = "; ".join(f"try {number} on {lost_try.host}: {lost_try.lost}" for number, lost_try in enumerate(tries, 1))
    began, now = datetime.fromisoformat(tries[-1].began_at), datetime.now(UTC)
    return RunResult(
        status="lost",
        message=f"lost {len(tries)} times and given up ({reasons}): see whether the agent overloads its machine",
        exit_code=None,
        started_at=began,
        finished_at=now,
        duration_seconds=(now - began).total_seconds(),
        submission=None,
        logs=empty_folder,
        code=empty_folder,
    )


def _note_attempt(workdir: Path, attempt: Attempt) -> None:
    """Write the attempt into the folder of its run."""
    (workdir / _ATTEMPT_FILE).write_text(attempt.model_dump_json(), "utf-8")


def leftover_folders(store: Store) -> Iterator[Path]:
    """Folders on this machine of runs that have ended and are in the store, and that no process uses."""
    for path in sorted((get_settings().scratch / "runs").glob(f"*/{_ATTEMPT_FILE}")):
        try:
            attempt = Attempt.model_validate_json(path.read_text("utf-8"))
        except (OSError, ValidationError):
            continue
        if attempt.request.store == store.root and is_stored(store, attempt) and _is_free(path.parent):
            yield path.parent


def is_stored(store: Store, attempt: Attempt) -> bool:
    """Whether the store has the record of this attempt, and not of one with another agent or dataset."""
    record = attempt_folder(store, attempt).read_run()
    return record is not None and record.key == attempt.key


def remove_folder(folder: Path) -> bool:
    """Remove a run's folder unless its agent lives or a process uses it. Returns whether it was removed."""
    layout = control.Layout(folder.absolute())
    try:
        with locked(layout.lock) as lock:
            if lock is None or not _has_ended(layout):
                return False
            remove_tree(socket_folder(layout.workdir))
            remove_tree(layout.workdir)
    except (OSError, BackendError):  # it is already removed, or belongs to another user
        return False
    return True


def remove_leftovers(store: Store) -> None:
    """Remove the folders of `leftover_folders`. Never fails, because the runs that follow do not depend on it."""
    with contextlib.suppress(Exception):  # errors of the store, too: the flow reports them when it uses the store
        for folder in leftover_folders(store):
            remove_folder(folder)


def _has_ended(layout: control.Layout) -> bool:
    return control.read(layout.outcome, control.Outcome) is not None


def _is_free(folder: Path) -> bool:
    layout = control.Layout(folder)
    try:
        with locked(layout.lock) as lock:
            return lock is not None and _has_ended(layout)
    except OSError:
        return False
