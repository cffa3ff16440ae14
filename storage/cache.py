"""A size-limited cache of local copies of prepared data, addressed by content; removes the least recently used first.

    <digest>/          the copy
    <digest>.json      its label, its size, and whether it is complete; modified at the last use
    <digest>.lock      locked while the copy is created or removed
    <digest>.uses/     one file per user; a copy with a live user is never removed

A user is live while its process is alive, and for the time that it requested (`at_least`), because an agent continues,
up to its time limit, after the process that started it was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.locks import locked
from common.processes import alive, identity
from common.syncing import sync_file_system


class CacheFull(UserError):
    """The disk has too little space for a copy."""

    kind = "disk full"


@dataclass(frozen=True)
class Entry:
    """A copy in the cache. `used` is the Unix time of its last use."""

    digest: str
    label: str
    bytes: int
    complete: bool
    used: float
    in_use: bool


class Cache:
    """The copies below `folder`, with at most `limit` bytes unless more are in use. Process-safe."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit

    @contextlib.contextmanager
    def use(
        self, digest: str, label: str, size: int, fill: Callable[[Path], None], at_least: float = 0
    ) -> Iterator[Path]:
        """The folder of a copy. It is kept during the block, and for `at_least` seconds if this process is killed.

        Args:
            digest: identifies the content.
            label: name of the content, for listings.
            size: size of the content in bytes.
            fill: creates the copy if it is missing. It receives the folder, which may hold files of an interrupted
                call, and gives a file its final name only when it is complete.
            at_least: time in seconds, see above.

        Raises:
            CacheFull: the disk has too little space.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        use = self._uses(digest) / f"{uuid.uuid4().hex}.json"
        try:
            with locked(self._lock(digest), wait=True):
                use.parent.mkdir(exist_ok=True)
                self._write(use, {"holder": identity(), "until": time.time() + at_least if at_least else None})
                record = self._record(digest)
                if record is None or not record["complete"]:
                    self._note(digest, label, size, complete=False)
                    self.make_room(size)
                    (self.folder / digest).mkdir(exist_ok=True)
                    fill(self.folder / digest)
                    sync_file_system(self.folder)
                self._note(digest, label, size, complete=True)
            yield self.folder / digest
        finally:
            use.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """All copies, least recently used first."""
        found = []
        for path in self.folder.glob("*.json"):
            digest = path.stem
            with contextlib.suppress(FileNotFoundError):
                record, used = self._record(digest), path.stat().st_mtime
                if record is not None:
                    found.append(
                        Entry(digest, record["label"], record["bytes"], record["complete"], used, self._in_use(digest))
                    )
        return sorted(found, key=lambda entry: entry.used)

    def make_room(self, size: int) -> None:
        """Remove copies until the limit is met and the disk has `size` free bytes. Raises `CacheFull`.

        `entries` includes the new copy already.
        """
        entries = self.entries()
        total = sum(entry.bytes for entry in entries)
        for entry in entries:
            if total <= self.limit and _free(self.folder) >= size:
                break
            if self.remove(entry.digest):
                total -= entry.bytes
        if (free := _free(self.folder)) < size:
            raise CacheFull(
                f"{self.folder}: a copy of {size / 1e9:,.1f} GB is needed and {free / 1e9:,.1f} GB are free; make "
                "room, or set MLEBENCH_SCRATCH to a larger disk"
            )

    def remove(self, digest: str) -> bool:
        """Remove a copy unless it is in use or being made; returns whether it was removed."""
        with locked(self._lock(digest)) as mine:
            if mine is None or self._in_use(digest):
                return False
            trash = self.folder / f".trash-{uuid.uuid4().hex}"
            with contextlib.suppress(FileNotFoundError):
                (self.folder / digest).rename(trash)
            (self.folder / f"{digest}.json").unlink(missing_ok=True)
            shutil.rmtree(trash, ignore_errors=True)
            shutil.rmtree(self._uses(digest), ignore_errors=True)
            return True

    def _in_use(self, digest: str) -> bool:
        return any(map(_lives, self._uses(digest).glob("*.json")))

    def _lock(self, digest: str) -> Path:
        return self.folder / f"{digest}.lock"

    def _uses(self, digest: str) -> Path:
        return self.folder / f"{digest}.uses"

    def _record(self, digest: str) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads((self.folder / f"{digest}.json").read_text())
        except (OSError, ValueError):
            return None
        return record

    def _note(self, digest: str, label: str, size: int, complete: bool) -> None:
        self._write(self.folder / f"{digest}.json", {"label": label, "bytes": size, "complete": complete})

    def _write(self, path: Path, value: Any) -> None:
        draft = path.with_suffix(f".{os.getpid()}-{uuid.uuid4().hex[:8]}")
        draft.write_text(json.dumps(value))
        draft.replace(path)


def _lives(use: Path) -> bool:
    try:
        record = json.loads(use.read_text())
    except FileNotFoundError:
        return False
    except ValueError:
        return True  # it is being written
    return alive(record["holder"]) is not False or (record["until"] or 0) > time.time()


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
