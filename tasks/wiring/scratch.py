"""Folders of runs on the scratch disk that nobody needs any more, because the run is stored.

A run's folder is removed after its record is written. If the orchestrator is killed in between, nothing would come back
for it: the run counts as finished. A note in the folder, written just before the record, says whose it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from common.locks import locked
from common.settings import get_settings
from sandbox.docker.network import socket_folder
from sandbox.errors import BackendError
from sandbox.supervision import control
from sandbox.world.files import remove_tree
from storage.runs.folders import RunFolder
from storage.store import Store
from tasks.wiring.requests import Attempt

_NOTE = "attempt.json"


def note(workdir: Path, attempt: Attempt) -> None:
    """Write into a run's folder which attempt it belongs to."""
    (workdir / _NOTE).write_text(attempt.model_dump_json(), "utf-8")


def finished(store: Store) -> Iterator[Path]:
    """Folders on this machine of runs that have ended and are in the store, and that no process uses."""
    for path in sorted((get_settings().scratch / "runs").glob(f"*/{_NOTE}")):
        try:
            attempt = Attempt.model_validate_json(path.read_text("utf-8"))
        except (OSError, ValidationError):
            continue
        if attempt.request.store == store.root and is_stored(store, attempt) and _is_free(path.parent):
            yield path.parent


def is_stored(store: Store, attempt: Attempt) -> bool:
    """Whether the store has the record of this very attempt, not of one with another agent or dataset."""
    record = RunFolder(store, attempt.request.run_group, attempt.competition_id, attempt.seed).read_run()
    return record is not None and record.key == attempt.key


def collect(folder: Path) -> bool:
    """Remove a run's folder unless its agent lives or a process uses it. Returns whether it was removed."""
    layout = control.Layout(folder.absolute())
    try:
        with locked(layout.lock) as mine:
            if mine is None or not _has_ended(layout):
                return False
            task = control.read(layout.task, control.Task)
            if task and task.marker.startswith("sha256:"):  # a container, which has sockets elsewhere
                remove_tree(socket_folder(layout.workdir))
            remove_tree(layout.workdir)
    except (OSError, BackendError):  # it is gone already, or of another user; it does no harm
        return False
    return True


def collect_finished(store: Store) -> None:
    """Remove the folders in `finished`. Never fails, because the runs that follow do not depend on it."""
    with contextlib.suppress(Exception):  # the store's own errors included: the flow will say so
        for folder in finished(store):
            collect(folder)


def _has_ended(layout: control.Layout) -> bool:
    return control.read(layout.outcome, control.Outcome) is not None


def _is_free(folder: Path) -> bool:
    layout = control.Layout(folder)
    try:
        with locked(layout.lock) as mine:
            return mine is not None and _has_ended(layout)
    except OSError:
        return False
