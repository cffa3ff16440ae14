"""Runs that have not ended: on this host, from its slots and its processes, and on other hosts, from the store.

Each process lists the runs that it has not begun in a file in the folder of the host:

pending/<id>.jsonl    locked while the process lives; a line for each run that is added or begun
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from common import plain_json
from common.jsonlines import parse
from common.locks import acquire, locked, release
from common.progress import Event
from common.settings import get_settings
from sandbox.host.folder import host_folder
from storage.lease import held, run_lease
from storage.runs.files import is_seed
from storage.runs.folders import RunFolder, folders_with
from storage.runs.tries import FILE, Tries, Try
from storage.store import Store
from tasks.wiring.host import host_slots
from tasks.wiring.requests import Attempt

Labels = dict[str, str]
"""Store, group, competition and seed of a run, as in `sandbox.host.slots.Claim.labels`."""

State = Literal["waiting", "running", "interrupted"]


@dataclass(frozen=True)
class RunInProgress:
    """A run that has not ended."""

    folder: RunFolder
    state: State
    """`interrupted`: its agent was started, and no process waits for its end."""
    host: str
    since: datetime | None = None
    """The time when its agent was started, or found again; None if it waits."""
    gpus: int | None = None
    """Only known for runs on this host."""
    tries: int | None = None
    """The number of starts of its agent."""
    resumed: int | None = None
    """The number of starts from a checkpoint."""

    @property
    def seconds(self) -> float | None:
        """Time since then."""
        return None if self.since is None else max(0.0, (datetime.now(UTC) - self.since).total_seconds())


def in_progress(
    store: Store, run_group: str | None = None, begun: Iterable[RunFolder] | None = None
) -> list[RunInProgress]:
    """The runs of a group, or of all, that have not ended, by name. Those that wait are known of this host only.

    Args:
        store: The store.
        run_group: The name of the group.
        begun: The folders that have the file `storage.runs.tries.FILE`, if they are known.
    """
    host, runs = get_settings().host_name, dict[str, RunInProgress]()
    for claim in host_slots().waiting():
        if (folder := _folder(claim.labels, store, run_group)) is not None:
            runs[folder.name] = RunInProgress(folder, "waiting", host)
    for holder in host_slots().holders():
        if (folder := _folder(holder.claim.labels, store, run_group)) is not None:
            state: State = "running" if holder.waited_for else "interrupted"
            since = datetime.fromisoformat(holder.since)
            runs[folder.name] = RunInProgress(folder, state, host, since, holder.claim.gpus)
    for folder in folders_with(store, FILE, run_group) if begun is None else begun:
        tries = Tries(store, folder.url).read()
        resumed = sum(each_try.resumed_at is not None for each_try in tries) or None
        if folder.name in runs:
            runs[folder.name] = replace(runs[folder.name], tries=len(tries) or None, resumed=resumed)
        elif tries and not _recorded(folder, tries[-1]):
            alive = held(store, run_lease(folder.run_group, folder.competition_id, folder.seed))
            began = datetime.fromisoformat(tries[-1].began_at)
            runs[folder.name] = RunInProgress(
                folder, "running" if alive else "interrupted", tries[-1].host, began, None, len(tries), resumed
            )
    for labels in pending_runs():
        folder = _folder(labels, store, run_group)
        if folder is not None and (folder.name not in runs or runs[folder.name].state == "interrupted"):
            runs[folder.name] = RunInProgress(folder, "waiting", host)
    return [runs[name] for name in sorted(runs)]


def _recorded(folder: RunFolder, last_try: Try) -> bool:
    """Whether the run's record is that of its last try. The tries are stored with the run if there were several."""
    record = folder.read_run_if_valid()
    if record is None:
        return False
    return record.finished_at is None or record.finished_at >= datetime.fromisoformat(last_try.began_at)


def _folder(labels: Mapping[str, str], store: Store, run_group: str | None) -> RunFolder | None:
    """The folder of a run that has a slot or waits for one; None if it is of another store or group."""
    group, seed = labels.get("group", ""), labels.get("seed", "")
    if labels.get("store") != store.root or run_group not in (None, group) or not is_seed(seed):
        return None
    return RunFolder(store, group, labels.get("competition", ""), int(seed))


class PendingRuns:
    """The runs that this process has not begun. Use it in a `with` statement. Thread-safe."""

    def __enter__(self) -> Self:
        folder = _pending_folder()
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{uuid.uuid4().hex}.jsonl"
        self._file = acquire(self._path)
        self._labels: dict[str, Labels] = {}
        return self

    def __exit__(self, *_error: object) -> None:
        self._path.unlink(missing_ok=True)
        file, self._file = self._file, None
        if file is not None:
            release(file)

    def add(self, attempt: Attempt) -> None:
        """List a run."""
        labels = self._labels[attempt.name] = _labels(attempt)
        self._write(labels, "pending")

    def remove(self, name: str) -> None:
        """List the run with this name no longer: it has begun, has ended, or will not be made."""
        if labels := self._labels.pop(name, None):
            self._write(labels, "begun")

    def on_event(self, event: Event) -> None:
        """Remove a run that begins; a listener of `common.progress`."""
        if event.state == "running":
            self.remove(event.row)

    def _write(self, labels: Labels, state: str) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # nothing depends on it
                os.write(self._file, plain_json.dumps({**labels, "state": state}).encode() + b"\n")


def pending_runs() -> list[Labels]:
    """The runs that the processes of this host have not begun."""
    pending: dict[tuple[str, ...], Labels] = {}
    for path in _pending_folder().glob("*.jsonl"):
        with contextlib.suppress(OSError), locked(path) as free:
            if free is not None:  # its process was killed
                path.unlink(missing_ok=True)
                continue
            for labels in parse(path.read_bytes()):
                key = tuple(labels[name] for name in ("store", "group", "competition", "seed"))
                if labels.pop("state") == "pending":
                    pending[key] = labels
                else:
                    pending.pop(key, None)
    return list(pending.values())


def _labels(attempt: Attempt) -> Labels:
    request = attempt.request
    return {
        "store": request.store,
        "group": request.run_group,
        "competition": attempt.competition_id,
        "seed": str(attempt.seed),
    }


def _pending_folder() -> Path:
    return host_folder(get_settings().host_name) / "pending"
