"""Checkpoints of an agent's home: pack it while the agent runs, and restore it in the home of another try.

The files of an agent may be hostile, both when they are packed and when they are restored. A checkpoint has regular
files and folders only, each read below the open folder that contains it. A file has the length that it had when it was
opened, holes included. An SQLite database is read together with the files that belong to it. A checkpoint is restored
into a new home in which no process runs yet, replaces nothing there, and writes nothing outside of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from common import names, trees
from common.units import size
from sandbox.definitions import NOT_RESUMED, Agent
from sandbox.errors import BackendError

ALWAYS_PACKED = ("submission", "code", "logs")
"""Folders that are in every checkpoint, besides the session."""
SESSION_ONLY = (*NOT_RESUMED, "agent", ".cache")
"""Files and folders of which a checkpoint has only what belongs to the session."""
MAX_FILES = 100_000
MAX_REREAD_BYTES = 32 * 1024**2
"""Files of up to this many bytes are read again if the agent changes them meanwhile."""
DATABASE_SUFFIXES = ("-wal", "-journal")
"""Endings of the files beside an SQLite database that belong to it: neither is complete without the other."""
_MAX_READS = 3
"""Maximum number of attempts to read files that the agent changes meanwhile."""


class CheckpointStopped(Exception):
    """A checkpoint was given up, because the run has ended."""


@dataclass(frozen=True)
class Packed:
    """The content of a checkpoint, in numbers."""

    files: int
    left_out: int
    """Working files that did not fit, and what cannot be stored: links, special files, odd names."""


def pack(
    home: Path, agent: Agent, target: Path, max_bytes: int, give_up: Callable[[], object] = lambda: False
) -> Packed:
    """Write the files of an agent, which may be running, to a tar file.

    Its session and the folders `ALWAYS_PACKED` come first, its other working files as far as they fit.

    Args:
        home: the agent's home.
        agent: the agent, whose session is named by `resume`.
        target: the file; replaced.
        max_bytes: limit of the files' lengths together, each of which counts `trees.MIN_ENTRY_BYTES` at least.
        give_up: called before every file and every read; if it returns something true, the work is stopped.

    Raises:
        BackendError: the session and the folders `ALWAYS_PACKED` are larger than that, or have too many files.
        CheckpointStopped: `give_up` returned something true.
        OSError: the home is gone, or the disk is full.
    """
    session = tuple(agent.resume or ())
    remaining_bytes, files, left_out = max_bytes, 0, 0
    with (
        trees.opened_folder(home) as top,
        target.open("wb") as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for needed in (True, False):
            for entry in trees.walk(top, enter=lambda folder: _is_entered(folder, session)):
                if give_up():
                    raise CheckpointStopped
                if _is_needed(entry.path, session) != needed or (not needed and not _is_taken(entry.path)):
                    continue
                if entry.is_file and _belongs_to_database(entry):
                    continue
                group = [entry, *_beside(entry)]
                length = sum(max(member.status.st_size, trees.MIN_ENTRY_BYTES) for member in group)
                if not (entry.is_file or entry.is_folder) or names.problem(entry.path):
                    left_out += 1
                elif length > remaining_bytes or files + len(group) > MAX_FILES:
                    if needed:
                        raise BackendError(
                            f"its session, {', '.join(f'{folder}/' for folder in ALWAYS_PACKED)} have more than "
                            f"{size(max_bytes)} or {MAX_FILES:,} files"
                        )
                    left_out += len(group)
                elif _add_group(tar, file, group, remaining_bytes, give_up):
                    remaining_bytes, files = remaining_bytes - length, files + len(group)
    return Packed(files, left_out)


def unpack(source: Path, home: Path) -> None:
    """Restore a checkpoint in a new home, in which nothing is replaced. Special permissions are not restored.

    Raises:
        BackendError: it is damaged.
        OSError: it does not fit on the disk.
    """
    try:
        with tarfile.open(source, "r|") as tar:
            for member in tar:
                if (
                    names.problem(member.name)
                    or member.name in SESSION_ONLY
                    or member.name.split("/")[0] in NOT_RESUMED
                ):
                    continue
                path = home.joinpath(*PurePosixPath(member.name).parts)
                if member.isdir():
                    with contextlib.suppress(FileExistsError, NotADirectoryError):
                        path.mkdir(parents=True)
                elif member.isreg() and (content := tar.extractfile(member)) is not None:
                    with contextlib.suppress(FileExistsError, NotADirectoryError):
                        path.parent.mkdir(parents=True, exist_ok=True)
                        with path.open("xb") as file:
                            while chunk := content.read(trees.CHUNK):
                                file.write(chunk)
                            os.fchmod(file.fileno(), 0o755 if member.mode & 0o111 else 0o644)
                        with contextlib.suppress(OSError, OverflowError):  # agents find their latest session by it
                            os.utime(path, (member.mtime, member.mtime))
    except tarfile.TarError as error:
        raise BackendError(f"the checkpoint {source} is damaged: {error}") from error


def _is_needed(path: str, session: tuple[str, ...]) -> bool:
    return any(path == needed or path.startswith(f"{needed}/") for needed in (*session, *ALWAYS_PACKED))


def _is_taken(path: str) -> bool:
    return path.split("/")[0] not in SESSION_ONLY


def _is_entered(folder: trees.Entry, session: tuple[str, ...]) -> bool:
    """Whether something in a folder may be in a checkpoint."""
    path = folder.path
    return trees.readable(folder) and (
        _is_taken(path) or _is_needed(path, session) or any(needed.startswith(f"{path}/") for needed in session)
    )


def _belongs_to_database(entry: trees.Entry, name: str | None = None) -> bool:
    """Whether a file, or the file with this name in its folder, is packed together with the database it belongs to."""
    name = name or entry.name
    main_names = (name.removesuffix(suffix) for suffix in DATABASE_SUFFIXES if name.endswith(suffix))
    return any(_status(entry, main_name) and not _belongs_to_database(entry, main_name) for main_name in main_names)


def _beside(entry: trees.Entry) -> list[trees.Entry]:
    """The files that belong to a file if it is an SQLite database in use."""
    if not entry.is_file:
        return []
    statuses = ((suffix, _status(entry, entry.name + suffix)) for suffix in DATABASE_SUFFIXES)
    return [replace(entry, name=entry.name + suffix, status=status) for suffix, status in statuses if status]


def _status(entry: trees.Entry, name: str) -> os.stat_result | None:
    """The status of a regular file beside an entry; None if there is none."""
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(name, dir_fd=entry.folder, follow_symlinks=False)
        return status if stat.S_ISREG(status.st_mode) else None
    return None


def _add_group(
    tar: tarfile.TarFile,
    target: BinaryIO,
    group: list[trees.Entry],
    remaining_bytes: int,
    give_up: Callable[[], object],
) -> bool:
    """Add files that belong together, again if the agent changes one meanwhile; returns as `_add`.

    `target` is the open file that the tar file is written to.
    """
    if len(group) == 1:
        return _add(tar, group[0], remaining_bytes, give_up)
    start = tar.offset
    for last in (False,) * (_MAX_READS - 1) + (True,):
        before = [_version(entry) for entry in group]
        added = [_add(tar, entry, remaining_bytes - (tar.offset - start), give_up) for entry in group]
        if last or before == [_version(entry) for entry in group]:
            break
        target.seek(start)
        target.truncate()
        tar.offset = start
    return added[0]


def _version(entry: trees.Entry) -> tuple[int, int, int] | None:
    status = _status(entry, entry.name)
    return status and (status.st_ino, status.st_size, status.st_mtime_ns)


def _add(tar: tarfile.TarFile, entry: trees.Entry, remaining_bytes: int, give_up: Callable[[], object]) -> bool:
    """Add a file or folder; returns whether it could be read and is no longer than `remaining_bytes`."""
    info = tarfile.TarInfo(entry.path)
    info.mtime, info.mode = entry.status.st_mtime, 0o755 if entry.status.st_mode & 0o100 else 0o644
    if entry.is_folder:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
        return True
    try:
        for _ in range(_MAX_READS):
            with trees.opened_file(entry.name, entry.folder) as file:
                before = os.fstat(file)
                info.size = before.st_size
                if info.size > remaining_bytes:
                    return False
                if info.size > MAX_REREAD_BYTES:
                    tar.addfile(info, _FixedLengthReader(file, info.size, give_up))
                    return True
                content = b"".join(trees.pieces(file, info.size)) if info.size else b""
                after = os.fstat(file)
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                break
    except OSError as error:
        if isinstance(error, trees.NotRegular) or error.filename == entry.name:
            return False  # it was removed or replaced meanwhile, or the agent alone may read it
        raise
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
    return True


class _FixedLengthReader(io.RawIOBase):
    """Reads a file that may change as if it kept its length: zeros replace bytes that were cut off meanwhile."""

    def __init__(self, file: int, length: int, give_up: Callable[[], object]) -> None:
        self._pieces: Iterator[bytes] = trees.pieces(file, length)
        self._remaining_bytes, self._give_up, self._rest = length, give_up, b""

    def read(self, count: int = -1) -> bytes:
        """The next bytes, at most `count`."""
        if self._give_up():
            raise CheckpointStopped
        length = self._remaining_bytes if count < 0 else min(count, self._remaining_bytes)
        while len(self._rest) < length:
            self._rest += next(self._pieces, b"") or bytes(length - len(self._rest))
        chunk, self._rest = self._rest[:length], self._rest[length:]
        self._remaining_bytes -= len(chunk)
        return chunk
