"""Local copies of prepared datasets: files of an object store are fetched concurrently, and their hashes verified."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from common.concurrency import bounded_map
from competitions import registry
from storage.cache import PARTIAL, Cache
from storage.dataset import Dataset
from storage.datasets.commit import DESCRIPTION
from storage.datasets.uses import use
from storage.datasets.verify import read_manifest
from storage.keys import content_key_of_rows
from storage.store import Store
from storage.uses import Continuing
from storage.writers import MAX_BYTES_IN_FLIGHT, MAX_TRANSFERS, HashingWriter, StoreError, read_whole

RANGE_BYTES = 8 << 20  # bytes of one request; larger files are fetched with several requests at a time


@contextlib.contextmanager
def local_copy(
    store: Store,
    dataset: Dataset,
    part: str,
    cache: Cache,
    continuing: Continuing | None = None,
    on_wait: Callable[[str], None] = lambda _: None,
    *,
    within_limit: bool = False,
) -> Iterator[Path]:
    """Provide one part of a dataset locally for the block. Yields the directory that contains the part.

    A local store is used in place. Files of an object store are downloaded to the cache, and their hashes are verified.

    Args:
        store: store of the dataset.
        dataset: the dataset; without a key the current one.
        part: "public" or "private".
        cache: cache for the copy; not used with a local store.
        continuing: a run that uses the dataset or the copy even if this process is killed.
        on_wait: called with what is waited for: disk space, or another process that makes the same copy.
        within_limit: wait until the copy fits within the cache's limit, see `Cache.use`.

    Raises:
        UserError: the dataset is not prepared, or the store's copy is damaged.
    """
    with use(store, dataset, continuing) as committed:
        local_folder = store.local(store.relative(store.prepared(committed)))
        if local_folder is not None:
            yield local_folder
            return
        manifest = read_manifest(store, committed)

        def files() -> Iterator[tuple[str, int, str]]:
            rows = manifest.rows("part", "path", "bytes", "hash")
            return ((path, size, digest) for of_part, path, size, digest in rows if of_part == part)

        def fill(folder: Path) -> None:
            fetch_all(store, f"{store.prepared(committed)}/{part}", files(), folder / part)

        size, digest = sum(size for _, size, _ in files()), content_key_of_rows(part, files())
        with cache.use(
            digest,
            label_of(dataset, part),
            size,
            fill,
            continuing=continuing,
            within_limit=within_limit,
            on_wait=on_wait,
        ) as root:
            if part == "public":
                _lay_texts_beside(store, committed, root / part)
            yield root


def label_of(dataset: Dataset, part: str) -> str:
    """The name of a part of a dataset in listings of the cache."""
    return f"{dataset.competition_id} {dataset.edition} {part}"


def _lay_texts_beside(store: Store, dataset: Dataset, folder: Path) -> None:
    """Write the descriptions next to the files of a copy. They are not part of the dataset and may be added later."""
    from storage.sources.kaggle.pages import OFFICIAL

    if not (folder / DESCRIPTION).exists():  # a container needs a file to mount the text of its run over
        (folder / DESCRIPTION).write_text(registry.get(dataset.competition_id).describe(dataset.edition), "utf-8")
        (folder / DESCRIPTION).chmod(0o444)  # as the files of the dataset
    path = store.top.path(store.relative(f"{store.prepared(dataset)}/public/{OFFICIAL}"))
    if store.top.fs.exists(path):
        store.top.fs.get_file(path, str(folder / OFFICIAL))
    else:
        (folder / OFFICIAL).unlink(missing_ok=True)


class _File(NamedTuple):
    """A file to fetch: its path in the store and here, its bytes and its BLAKE3."""

    source: str
    target: Path
    bytes: int
    hash: str


def fetch_all(store: Store, url: str, files: Iterable[tuple[str, int, str]], folder: Path) -> None:
    """Fetch files (path below `url`, bytes, BLAKE3) to the same paths below `folder`, and make them read-only.

    Existing files of the right size are skipped, because only complete and verified files get their final name. Memory
    does not depend on the number of files or on their size. Raises `StoreError`.
    """
    root = store.top.path(store.relative(url))
    pending = (
        _File(f"{root}/{path}", folder / path, size, file_hash)
        for path, size, file_hash in files
        if _size(folder / path) != size
    )
    with contextlib.ExitStack() as unfinished:
        draft: _Draft | None = None
        for file, data in bounded_map(_calls(store.top.fs, pending), count=MAX_TRANSFERS, total=MAX_BYTES_IN_FLIGHT):
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
    """The requests, with the bytes that each holds in memory: for whole small files, and for ranges of large files."""
    for file in files:
        if file.bytes <= RANGE_BYTES:
            yield file.bytes, partial(_fetch_whole, fs, file)
            continue
        for start in range(0, file.bytes, RANGE_BYTES):
            size = min(RANGE_BYTES, file.bytes - start)
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
        raise _damaged(f"{file.source} is missing in the store") from error


def _damaged(text: str) -> StoreError:
    return StoreError(f"{text}; prepare it again").of_kind("damaged data")


class _Draft:
    """A file under a temporary name, which is removed at the end of the block unless it was kept."""

    def __init__(self, file: _File) -> None:
        self._file = file
        # The name of the file with a suffix may be too long.
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
        """Whether the draft has all bytes of the file."""
        return self._writer.count >= self._file.bytes

    def keep(self) -> None:
        """Rename the file to its final name. Raises `StoreError` if its hash is wrong."""
        if self._writer.written().hash != self._file.hash:
            raise _damaged(f"{self._file.source} differs from the prepared file (by its hash)")
        self._sink.close()
        self._path.chmod(0o444)
        self._path.replace(self._file.target)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
