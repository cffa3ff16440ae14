"""Download prepared files from an object store concurrently, and verify their hashes."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from common.concurrency import bounded_map
from storage.cache import PARTIAL
from storage.store import Store
from storage.writers import IN_FLIGHT, UPLOADS, HashingWriter, StoreError, read_whole

_RANGE = 8 << 20  # bytes of one request; larger files are fetched with several requests at a time


class DamagedFile(StoreError):
    """A file in the store is missing or differs from the prepared one."""

    kind = "damaged data"


class _File(NamedTuple):
    """A file to fetch: its path in the store and here, its bytes and its BLAKE3."""

    source: str
    target: Path
    bytes: int
    hash: str


def fetch_all(store: Store, url: str, files: Iterable[tuple[str, int, str]], folder: Path) -> None:
    """Fetch files (path below `url`, bytes, BLAKE3) to the same paths below `folder`, and make them read-only.

    Existing files of the right size are skipped, because only complete and verified files get their final name. Memory
    does not depend on the number of files or on their size. Raises `DamagedFile`.
    """
    root = store.top.path(store.relative(url))
    todo = (
        _File(f"{root}/{path}", folder / path, size, known)
        for path, size, known in files
        if _size(folder / path) != size
    )
    with contextlib.ExitStack() as unfinished:
        draft: _Draft | None = None
        for file, data in bounded_map(_calls(store.top.fs, todo), count=UPLOADS, total=IN_FLIGHT):
            if data is None:
                continue
            draft = draft or unfinished.enter_context(_Draft(file))
            draft.write(data)
            if draft.complete:
                draft.keep()
                draft = None
                unfinished.close()


_Fetched = tuple[_File, bytes | None]
"""A file, and one range of it; None if it is complete."""


def _calls(fs: Any, files: Iterable[_File]) -> Iterator[tuple[int, Callable[[], _Fetched]]]:
    """The requests, with the bytes that each of them holds in memory: small files whole, large ones in ranges."""
    for file in files:
        if file.bytes <= _RANGE:
            yield file.bytes, partial(_fetch_whole, fs, file)
            continue
        for start in range(0, file.bytes, _RANGE):
            size = min(_RANGE, file.bytes - start)
            yield size, partial(_fetch_range, fs, file, start, start + size)


def _fetch_whole(fs: Any, file: _File) -> _Fetched:
    with _reading(file):
        data = read_whole(fs, file.source)
    with _Draft(file) as draft:
        draft.write(data)
        draft.keep()
    return file, None


def _fetch_range(fs: Any, file: _File, start: int, stop: int) -> _Fetched:
    with _reading(file):
        return file, fs.cat_file(file.source, start=start, end=stop)


@contextlib.contextmanager
def _reading(file: _File) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedFile(f"{file.source} is missing in the store; prepare it again") from error


class _Draft:
    """A file under a temporary name, which is removed at the end of the block unless it was kept."""

    def __init__(self, file: _File) -> None:
        self._file = file
        # Not the file's own name with a suffix, which may be too long.
        self._path = file.target.with_name(f".{secrets.token_hex(6)}{PARTIAL}")

    def __enter__(self) -> _Draft:
        self._sink = self._open()
        self._writer = HashingWriter(self._sink)
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.close()
        self._path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        try:
            return self._path.open("wb")
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._path.open("wb")

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._writer.write(data)

    @property
    def complete(self) -> bool:
        """Whether it has as many bytes as the file."""
        return self._writer.count >= self._file.bytes

    def keep(self) -> None:
        """Give it its name. Raises `DamagedFile` if its hash is wrong."""
        if self._writer.written().hash != self._file.hash:
            raise DamagedFile(f"{self._file.source} differs from the prepared file (by its hash); prepare it again")
        self._sink.close()
        self._path.chmod(0o444)
        self._path.replace(self._file.target)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
