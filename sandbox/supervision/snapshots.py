"""Snapshots of a submission: every version with its time, taken from outside the sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Self

from sandbox.limits import Limits
from sandbox.supervision.control import Layout

CHUNK = 1024**2


class Snapshots:
    """Copies of ``submission.csv``, named by the seconds since the start: ``12.5.csv``.

    A version is copied once it has not changed between two calls of `look`, which leaves out half-written files. Links
    are not followed.
    """

    def __init__(self, home: Path, folder: Path, *, count: int, size: int, single: int) -> None:
        """Continue with the snapshots in ``folder``.

        Args:
            home: the agent's home.
            folder: created if missing.
            count: number of snapshots to keep; above it, every second one is removed.
            size: total bytes to keep; above it, every second one is removed, too.
            single: larger submissions are ignored.
        """
        self._home, self._folder = home, folder
        self._count, self._size, self._single = count, size, single
        folder.mkdir(exist_ok=True)
        snapshots = self._kept()
        self._last = _hash(snapshots[-1]) if snapshots else ""
        self._seen: tuple[int, ...] | None = None
        self._taken: tuple[int, ...] | None = None

    @classmethod
    def of(cls, layout: Layout, limits: Limits) -> Self:
        """The snapshots of a run."""
        return cls(
            layout.home,
            layout.snapshots,
            count=limits.snapshots,
            size=limits.snapshot_bytes,
            single=limits.submission_bytes,
        )

    def look(self, seconds: float, *, last: bool = False, give_up: Callable[[], object] = bool) -> bool:
        """Copy the submission if it is a new version; returns whether it was copied.

        Args:
            seconds: time since the run's start.
            last: the agent has ended, so the file is complete.
            give_up: asked while a file is copied, which can take long; if it returns something true, the copy is given
                up until the next call.
        """
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            top = os.open(self._home / "submission", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, top)
            # Non-blocking: opening a pipe of that name would wait for a writer.
            file = os.open("submission.csv", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=top)
            stack.callback(os.close, file)
            state = _state(file)
            if state is None or state[2] > self._single or state == self._taken:
                return False
            steady, self._seen = state == self._seen or last, state
            if steady:
                return self._take(file, state, seconds, give_up)
        return False

    def _take(self, file: int, state: tuple[int, ...], seconds: float, give_up: Callable[[], object]) -> bool:
        target = self._folder / f"{seconds:.1f}.csv"
        temporary = target.with_suffix(".part")
        digest, remaining_bytes = hashlib.sha256(), state[2]
        try:
            with temporary.open("wb") as copy:
                while remaining_bytes > 0 and (chunk := os.read(file, min(CHUNK, remaining_bytes))):
                    copy.write(chunk)
                    digest.update(chunk)
                    remaining_bytes -= len(chunk)
                    if give_up():
                        break
        except OSError:  # a full disk
            temporary.unlink(missing_ok=True)
            return False
        if remaining_bytes > 0 or _state(file) != state:
            temporary.unlink()
            return False
        self._taken = state
        if digest.hexdigest() == self._last:
            temporary.unlink()
            return False
        temporary.replace(target)
        self._last = digest.hexdigest()
        self._thin_out()
        return True

    def _thin_out(self) -> None:
        """Remove every second snapshot between the first and the last."""
        snapshots = self._kept()
        while len(snapshots) > 1 and (
            len(snapshots) > self._count or sum(snapshot.stat().st_size for snapshot in snapshots) > self._size
        ):
            for path in snapshots[1:-1:2] or snapshots[:1]:
                path.unlink()
            snapshots = self._kept()

    def _kept(self) -> list[Path]:
        return sorted(self._folder.glob("*.csv"), key=lambda path: float(path.stem))


def _state(file: int) -> tuple[int, ...] | None:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
