"""From declaration to files: plan, cut into chunks, run on workers, manifest, commit marker.

The steps of preparing one competition into a directory (a local path or fsspec URL):

1. `declare` runs prepare.py on one worker, writes what prepare computed (tables and other content) and returns the
   rest as values: copies, archives of members, derived files.
2. These are cut into chunks of bounded bytes and carried out by the executor, in this process or on Dask. A chunk
   travels as values: competition, edition, source URL, destination URL, tasks.
3. The manifest (Parquet) and, last of all, the commit marker are written. A dataset without the marker does not exist.

Every chunk that is done leaves its manifest rows in `.progress/<key>/`, so that a run that was killed goes on after the
last finished chunk.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from competitions import registry
from competitions.competition import Competition
from competitions.download import Download
from competitions.editions import Edition
from competitions.preparation import Archive, Content
from storage.execute import Task, execute
from storage.journal import Columns, Journal, columns_of, manifest_of
from storage.plan import Chunk, cut, in_storage_order, pack, unpack
from storage.writers import Destination

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.parquet"
MARKER = "commit.json"


class Job(NamedTuple):
    """Which dataset is being prepared; all a worker needs beside the package."""

    competition: str
    folder: str | None
    edition: Edition
    params: dict[str, Any]
    raw: str
    out: str
    key: str = ""

    def load(self) -> Competition:
        """The competition itself."""
        return Competition.load(Path(self.folder)) if self.folder else registry.get(self.competition)


class Progress(NamedTuple):
    """How far a dataset is: files and bytes written, of how many."""

    files: int
    files_total: int
    bytes: int
    bytes_total: int


class Executor(Protocol):
    """Runs a function over values, in any order, and yields the results as they come."""

    def map(self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any) -> Iterator[Any]:
        """`function(value, *fixed)` for each value."""
        ...


class Serial:
    """The executor of one process."""

    def map(self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any) -> Iterator[Any]:
        """One after the other."""
        for value in values:
            yield function(value, *fixed)


def materialise(
    competition_id: str,
    raw: str,
    out: str,
    *,
    edition: Edition = "v1",
    params: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    executor: Executor | None = None,
    key: str = "",
    on_progress: Callable[[Progress], None] | None = None,
    before_commit: Callable[[], None] | None = None,
) -> pd.DataFrame:
    """Prepare a competition from the download at `raw` into `out`; returns the manifest.

    `raw` and `out` are local paths or fsspec URLs. `key` identifies the content (see `storage.keys`): progress of an
    interrupted run with the same key is continued, what other content left is removed. `before_commit` may raise to
    have nothing published (see `storage.lease`). Raises `DownloadError` for a damaged or incomplete download.
    """
    executor = executor or Serial()
    destination = Destination(out)
    job = Job(competition_id, str(folder) if folder else None, edition, dict(params or {}), raw, out, key)
    journal = Journal(destination, key)
    unmark(destination)
    done, chunks = journal.resume() if key else ({}, None)
    if chunks is None:
        make_way(destination)
        plan = next(iter(executor.map(declare, [job])))
        journal.note("declared", plan.done)
        done, chunks = {"declared": plan.done}, plan.chunks
        journal.plan(chunks)
    counter = _Counter(done, chunks, on_progress)
    todo = [(number, chunk.tasks) for number, chunk in enumerate(chunks) if f"{number}" not in done]
    for number, rows in executor.map(run_chunk, todo, job):
        done[f"{number}"] = rows
        counter.add(rows)
    manifest = manifest_of(done.values())
    if before_commit:
        before_commit()
    _commit(destination, manifest, job)
    journal.clear()
    return manifest


class Plan(NamedTuple):
    """What is left after declaring: manifest rows of the files already written, and chunks for workers."""

    done: Columns
    chunks: list[Chunk]


def declare(job: Job) -> Plan:
    """Run prepare.py, write what it computed, return what remains. Runs on a worker."""
    competition = job.load()
    destination = Destination(job.out)
    download = _download(job)
    preparation = competition.declare(download, job.edition, job.params)
    checked = competition.facts.checksums.prepared
    here: list[Task] = []
    elsewhere: list[Task] = []
    for part, path, operation in preparation.operations():
        task = Task(part, path, operation, f"{part}/{path}" in checked)
        computed = isinstance(operation, Content) or (isinstance(operation, Archive) and not operation.portable)
        (here if computed else elsewhere).append(task)
    if "description.md" not in preparation.public.operations:
        text = competition.description.encode()
        here.append(Task("public", "description.md", Content(lambda: [text])))
    done = columns_of(execute(here, competition, download, destination))
    return Plan(done, [pack(tasks) for tasks in cut(in_storage_order(elsewhere, download))])


def run_chunk(numbered: tuple[int, list[Any]], job: Job) -> tuple[int, Columns]:
    """Carry out one chunk and note it as done. Runs on a worker."""
    number, tasks = numbered
    destination = Destination(job.out)
    rows = columns_of(execute(unpack(tasks), job.load(), _download(job), destination))
    Journal(destination, job.key).note(f"{number}", rows)
    return number, rows


_open: dict[tuple[Any, ...], Download] = {}


def _download(job: Job) -> Download:
    # One view a worker: an archive's directory is read once, not once a chunk. A replaced file is another one.
    identity: tuple[Any, ...] = (job.raw, job.key)
    with contextlib.suppress(OSError):
        stat = Path(job.raw.removeprefix("file://")).stat()
        identity += (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if identity not in _open:
        _open.clear()
        _open[identity] = Download.open(job.raw)
    return _open[identity]


class _Counter:
    """Tells how far a dataset is."""

    def __init__(
        self, done: dict[str, Columns], chunks: list[Chunk], on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._tell = on_progress
        self._files = len(done["declared"][0])  # its bytes are not known beforehand, so they do not count
        self._bytes = 0
        self._total = Progress(0, self._files + sum(chunk.files for chunk in chunks), 0, sum(c.bytes for c in chunks))
        for name, rows in done.items():
            self._count(rows if name != "declared" else [[], [], []])
        self._report()

    def add(self, rows: Columns) -> None:
        """A chunk is done."""
        self._count(rows)
        self._report()

    def _count(self, rows: Columns) -> None:
        self._files += len(rows[0])
        self._bytes += sum(rows[2])

    def _report(self) -> None:
        if self._tell:
            self._tell(self._total._replace(files=self._files, bytes=self._bytes))


def _commit(destination: Destination, manifest: pd.DataFrame, job: Job) -> None:
    destination.write(MANIFEST, [manifest.to_parquet(index=False)])
    marker = {
        "competition": job.competition,
        "edition": job.edition,
        "key": job.key,
        "files": len(manifest),
        "bytes": int(manifest["bytes"].sum()),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    destination.write(MARKER, [json.dumps(marker).encode()])


def make_way(destination: Destination) -> None:
    """Remove all that an earlier dataset left: a file that the new one does not have must not stay in it."""
    for name in (".progress", "public", "private"):
        with contextlib.suppress(FileNotFoundError):
            destination.fs.rm(destination.path(name), recursive=True)


def unmark(destination: Destination) -> None:
    """Remove the commit marker: from here on the dataset does not exist, until it is complete again."""
    with contextlib.suppress(FileNotFoundError):
        destination.fs.rm_file(destination.path(MARKER))
