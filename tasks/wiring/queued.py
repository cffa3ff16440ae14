"""Runs that a process of this host has yet to begin, beyond those that wait for a slot: other processes can list them.

queued/<id>.jsonl    one file a process, locked while it lives: a line for each run that it adds or begins
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import Self

from common import plain_json
from common.jsonlines import parse
from common.locks import acquire, locked, release
from common.progress import Event
from common.settings import get_settings
from sandbox.host.folder import host_folder
from tasks.wiring.requests import Attempt

Labels = dict[str, str]
"""Store, group, competition and seed of a run, as in `sandbox.host.slots.Claim.labels`."""


class Queued:
    """The runs that this process has yet to begin. Use it in a `with` statement. Thread-safe."""

    def __enter__(self) -> Self:
        folder = _folder()
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
        self._write(labels, "queued")

    def remove(self, name: str) -> None:
        """List the run with this name no longer: it has begun, has ended, or will not be made."""
        if labels := self._labels.pop(name, None):
            self._write(labels, "begun")

    def hear(self, event: Event) -> None:
        """Remove a run that begins; a listener of `common.progress`."""
        if event.state == "running":
            self.remove(event.row)

    def _write(self, labels: Labels, state: str) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # nothing depends on it
                os.write(self._file, plain_json.dumps({**labels, "state": state}).encode() + b"\n")


def queued() -> list[Labels]:
    """The runs that living processes of this host have yet to begin."""
    found: dict[tuple[str, ...], Labels] = {}
    for path in _folder().glob("*.jsonl"):
        with contextlib.suppress(OSError), locked(path) as free:
            if free is not None:  # its process was killed
                path.unlink(missing_ok=True)
                continue
            for labels in parse(path.read_bytes()):
                key = tuple(labels[name] for name in ("store", "group", "competition", "seed"))
                if labels.pop("state") == "queued":
                    found[key] = labels
                else:
                    found.pop(key, None)
    return list(found.values())


def _labels(attempt: Attempt) -> Labels:
    request = attempt.request
    return {
        "store": request.store,
        "group": request.run_group,
        "competition": attempt.competition_id,
        "seed": str(attempt.seed),
    }


def _folder() -> Path:
    return host_folder(get_settings().host_name) / "queued"
