"""Checkpoints of a run in progress, from which it can continue on another host: `checkpoints/<group>/<id>/<seed>/`.

    <generation>-<number>.tar    the home of the agent, see `sandbox.world.checkpoint`
    <generation>.json            which of them is the last complete one (`Checkpoint`)
    <generation>-kept/...        what the services and the host wrote of the run: journals, snapshots, log

The generation is that of the run's lease. A new checkpoint is written, then the record names it, then older ones are
removed, so there is always a complete one. A host that has lost the run without noticing writes to its own generation.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from competitions.preparing.archives.listing import files_below
from storage.lease import held, run_lease
from storage.runs.files import is_seed
from storage.runs.folders import RunFolder
from storage.runs.tries import FILE as TRIES
from storage.store import Store

TOP = "checkpoints"
_KEPT = re.compile(r"(\d{8})-kept/(.+)")
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    key: str
    """Content key of the run."""
    file: str
    sha256: str
    bytes: int
    seconds: float
    """How long the agent had run when the checkpoint was begun, in all tries that it continues."""
    began_at: str
    """When the first of them was begun; ISO 8601, UTC."""
    since: str
    """From when on requests count towards the limits of the services; as in their state."""
    resumed: int
    """How often the run had been resumed."""
    host: str
    left_out: int = 0
    """Working files that are not in it."""


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, folder: RunFolder) -> None:
        self.store: Store = folder.store
        self.url = folder.store.url(TOP, folder.run_group, folder.competition_id, folder.seed)

    def newest(self, key: str) -> Checkpoint | None:
        """The last complete checkpoint of the run with that key, of the newest generation that has one."""
        for name in sorted((file for file in self._names() if file.endswith(".json")), reverse=True):
            content = self.store.read_json(f"{self.url}/{name}")
            field_names = {field.name for field in fields(Checkpoint)}
            if isinstance(content, dict) and content.get("key") == key and set(content) <= field_names:
                return Checkpoint(**content)
        return None

    def save(self, generation: int, number: int, content: Path, facts: Mapping[str, Any]) -> Checkpoint:
        """Write a checkpoint, make it the last one of the generation, and remove older ones.

        Args:
            generation: that of the lease, which the caller holds.
            number: above those of earlier checkpoints of the generation.
            content: the tar file.
            facts: the other fields of `Checkpoint`.
        """
        name = f"{generation:08}-{number:08}.tar"
        with content.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        checkpoint = Checkpoint(file=name, sha256=digest, bytes=content.stat().st_size, **facts)
        self.store.put(f"{self.url}/{name}", content)
        self.store.top.sync()
        self.store.write_json(f"{self.url}/{generation:08}.json", asdict(checkpoint))
        for stored_name in self._names():
            # Kept files of this generation sort after the checkpoint.
            if stored_name < name and stored_name != f"{generation:08}.json":
                self.store.remove(f"{self.url}/{stored_name}")
        return checkpoint

    def keep(self, generation: int, name: str, path: Path) -> None:
        """Upload a file that the host has written of the run."""
        self.store.put(f"{self.url}/{generation:08}-kept/{name}", path)

    def fetch(self, checkpoint: Checkpoint, target: Path) -> bool:
        """Download a checkpoint; returns whether it exists and is complete."""
        digest = hashlib.sha256()
        path = self.store.top.path(self.store.relative(f"{self.url}/{checkpoint.file}"))
        try:
            with self.store.top.fs.open(path, "rb") as source, target.open("wb") as copy:
                while chunk := source.read(_READ_BYTES):
                    copy.write(chunk)
                    digest.update(chunk)
        except FileNotFoundError:
            return False
        return digest.hexdigest() == checkpoint.sha256

    def fetch_kept(self, checkpoint: Checkpoint, target: Path, newest: Collection[str]) -> None:
        """Download the files that the host has written of the run to a folder.

        It is what belongs to the checkpoint. Files whose paths begin with one of `newest` are those of the newest
        generation.
        """
        for name in self._names():  # by generation
            match = _KEPT.fullmatch(name)
            if match and (match[1] == checkpoint.file[:8] or match[2].startswith(tuple(newest))):
                path = target / match[2]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.store.read(f"{self.url}/{name}"))

    def remove(self) -> None:
        """Remove all checkpoints. Errors are ignored, because they must not end a run: `gc` removes the rest."""
        with contextlib.suppress(Exception):
            self.store.remove(self.url)

    def usage(self) -> tuple[int, int]:
        """Bytes and number of the files."""
        sizes = [size for _, size in self._files()]
        return sum(sizes), len(sizes)

    def _names(self) -> list[str]:
        return [name for name, _ in self._files()]

    def _files(self) -> list[tuple[str, int]]:
        top = self.store.top
        try:
            return list(files_below(top.fs, top.path(self.store.relative(self.url))))
        except FileNotFoundError:
            return []


def abandoned(store: Store) -> Iterator[RunFolder]:
    """Runs whose checkpoints are not needed: runs that are stored, or otherwise unknown, and not in progress."""
    top = store.top
    try:
        paths = [name for name, _ in files_below(top.fs, top.path(TOP))]
    except FileNotFoundError:
        return
    for group, competition_id, seed in sorted({tuple(path.split("/")[:3]) for path in paths if path.count("/") > 2}):
        folder = RunFolder(store, group, competition_id, int(seed)) if is_seed(seed) else None
        if folder is None or held(store, run_lease(group, competition_id, folder.seed)):
            continue
        if folder.finished() or not store.exists(f"{folder.url}/{TRIES}"):
            yield folder
