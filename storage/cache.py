"""A size-limited cache of local copies of prepared data, addressed by content; removes the least recently used first.

<digest>/          the copy
<digest>.json      its label, its size, and whether it is complete; modified at the last use
<digest>.lock      locked while the copy is created or removed
<digest>.uses/     one file per user, see `storage.uses`; a copy with a user is never removed
room.lock          locked while space is reserved
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import plain_json
from common.errors import UserError
from common.locks import locked
from common.plain_json import parse_json
from common.syncing import sync_file_system
from common.units import data_size
from competitions.preparing.archives.listing import files_on_disk, sizes_on_disk
from storage.uses import Continuing, in_use, use

PARTIAL = ".partial"
"""Suffix of a file that is being copied. Such files of a killed process are removed before its copy is continued."""
MAX_WAIT_SECONDS = 48 * 3600.0  # longer than any run, whose end frees space
POLL_SECONDS = 0.5


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
    """The copies below `folder`, with at most `limit` bytes unless users that cannot wait need more. Process-safe."""

    def __init__(self, folder: Path, limit: int, patience: float = MAX_WAIT_SECONDS) -> None:
        """`patience`: how long to wait, in seconds, for space that other users or copies take."""
        self.folder, self.limit, self.patience = folder, limit, patience

    @contextlib.contextmanager
    def use(
        self,
        digest: str,
        label: str,
        size: int,
        fill: Callable[[Path], None],
        *,
        continuing: Continuing | None = None,
        within_limit: bool = False,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Path]:
        """The folder of a copy, which is kept during the block.

        Waits while another process makes the same copy, and for space while other copies are in use or being made. A
        caller that already uses a copy does not wait for the limit: two callers that each use a copy and need another
        one would wait for each other. A copy that is larger than the limit is made when no other copy is in use.

        Args:
            digest: identifies the content.
            label: name of the content, for listings.
            size: size of the content in bytes.
            fill: creates the copy if it is missing. It receives the folder, which may hold files of an interrupted
                call, and gives a file its final name only when it is complete, and until then one with `PARTIAL`.
            continuing: a run that uses the copy even if this process is killed.
            within_limit: wait until the copy fits within the limit. Only for a caller that holds nothing else for
                which others wait.
            on_wait: called repeatedly with what is waited for.

        Raises:
            UserError: the disk has too little space, and the end of all other users would not make enough.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as users:
            with self._alone(digest, lambda: on_wait(f"for another process that copies {label}")):
                users.enter_context(use(self._uses(digest), continuing))
                record = self._record(digest)
                if record is None or not record["complete"]:
                    folder = self.folder / digest
                    for entry in files_on_disk(str(folder)):
                        if entry.name.endswith(PARTIAL):
                            Path(entry.path).unlink()
                    self._reserve(digest, label, size, within_limit, on_wait)
                    folder.mkdir(exist_ok=True)
                    fill(folder)
                    sync_file_system(self.folder)
                self._note(digest, label, size, "complete")
            yield self.folder / digest

    def entries(self) -> list[Entry]:
        """All copies, least recently used first."""
        entries = []
        for path in self.folder.glob("*.json"):
            digest = path.stem
            with contextlib.suppress(FileNotFoundError):
                record, used = self._record(digest), path.stat().st_mtime
                if record is not None:
                    busy = in_use(self._uses(digest))
                    entries.append(Entry(digest, record["label"], record["bytes"], record["complete"], used, busy))
        return sorted(entries, key=lambda entry: entry.used)

    def remove(self, digest: str) -> bool:
        """Remove a copy unless it is in use or being made; returns whether it was removed."""
        with locked(self._lock(digest)) as mine:
            if mine is None or in_use(self._uses(digest)):
                return False
            self._empty(digest)
            (self.folder / f"{digest}.json").unlink(missing_ok=True)
            shutil.rmtree(self._uses(digest), ignore_errors=True)
            return True

    def _reserve(self, digest: str, label: str, size: int, within_limit: bool, on_wait: Callable[[str], None]) -> None:
        """Reserve space for the missing bytes of a copy. Raises `UserError` if there is too little."""
        give_up = time.monotonic() + self.patience
        while True:
            with locked(self.folder / "room.lock", wait=True):
                may_wait = time.monotonic() < give_up
                missing = self._free_space(digest, size, may_wait, within_limit and may_wait)
                if not missing:
                    self._note(digest, label, size, "filling")
                    return
                self._note(digest, label, size, "waiting")
            on_wait(f"for {data_size(size)} of space {missing}, which other runs take")
            time.sleep(POLL_SECONDS)

    def _free_space(self, digest: str, size: int, may_wait: bool, within_limit: bool) -> str:
        """Remove copies until the limit is met and the disk has space. Called with `room.lock` held.

        Returns "" if there is space now, otherwise the place where other users will free space when they end. Raises
        `UserError` if the disk has too little space even then. Bytes that the copy already has are not needed again,
        and bytes that other copies still need are counted.
        """
        other_entries = [entry for entry in self.entries() if entry.digest != digest]
        state = {entry.digest: self._state(entry.digest) for entry in other_entries}
        waiting = [waiting_digest for waiting_digest, is_now in state.items() if is_now == "waiting"]
        # Copies that wait have no share of the limit yet, because they would wait for each other.
        shares = {entry.digest: 0 if entry.digest in waiting else entry.bytes for entry in other_entries}
        total = size + sum(shares.values())
        need = size - self._bytes(digest) + sum(self._still_to_come(entry) for entry in other_entries)
        for entry in other_entries:
            if total <= self.limit and _free(self.folder) >= need:
                return ""
            if self.remove(entry.digest):
                total -= shares.pop(entry.digest)
        if within_limit and total > self.limit and any(shares.values()):
            return f"within MLEBENCH_CACHE_LIMIT ({data_size(self.limit)})"
        free, halves = _free(self.folder), sum(map(self._bytes, waiting))
        if free + halves >= need:
            if free < need or total + halves > self.limit:
                for (
                    waiting_digest
                ) in waiting:  # their processes write nothing while they wait, and would wait for this one
                    self._empty(waiting_digest)
            return ""
        if may_wait and free + sum(self._bytes(entry.digest) for entry in other_entries) >= size - self._bytes(digest):
            return f"in {self.folder}"
        raise UserError(
            f"{self.folder}: a copy of {data_size(need)} is needed and {data_size(free)} are free; make "
            "room, or set MLEBENCH_SCRATCH to a larger disk"
        ).of_kind("disk full")

    def _still_to_come(self, entry: Entry) -> int:
        """Bytes that will be written to a copy that another process makes."""
        return max(0, entry.bytes - self._bytes(entry.digest)) if self._state(entry.digest) == "filling" else 0

    def _state(self, digest: str) -> str:
        """The state of a copy whose process is alive, otherwise ''."""
        with locked(self._lock(digest)) as free:
            record = self._record(digest)
            return "" if free is not None or record is None else str(record.get("state", ""))

    def _bytes(self, digest: str) -> int:
        """Bytes that a copy takes on the disk now."""
        return sum(sizes_on_disk(str(self.folder / digest)))

    def _empty(self, digest: str) -> None:
        """Remove the files of a copy at once, by renaming its folder first."""
        trash = self.folder / f".trash-{uuid.uuid4().hex}"
        with contextlib.suppress(FileNotFoundError):
            (self.folder / digest).rename(trash)
        shutil.rmtree(trash, ignore_errors=True)

    @contextlib.contextmanager
    def _alone(self, digest: str, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of a copy."""
        while True:
            with locked(self._lock(digest)) as mine:
                if mine is not None:
                    yield
                    return
            on_wait()
            time.sleep(POLL_SECONDS)

    def _lock(self, digest: str) -> Path:
        return self.folder / f"{digest}.lock"

    def _uses(self, digest: str) -> Path:
        return self.folder / f"{digest}.uses"

    def _record(self, digest: str) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = parse_json((self.folder / f"{digest}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return record

    def _note(self, digest: str, label: str, size: int, state: str) -> None:
        record = {"label": label, "bytes": size, "complete": state == "complete", "state": state}
        draft = self.folder / f"{digest}.{os.getpid()}-{uuid.uuid4().hex[:8]}"
        draft.write_text(plain_json.dumps(record))
        draft.replace(self.folder / f"{digest}.json")


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
