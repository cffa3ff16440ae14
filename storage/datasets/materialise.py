"""From declaration to files: plan, cut into chunks, run on workers, manifest, commit marker.

The steps of preparing one competition into a directory (a local path or fsspec URL):

1. `declare` runs prepare.py on one worker, writes what prepare computed (tables and other content) and cuts the rest
   (copies, archives of members, derived files) into chunks of bounded bytes, which it leaves in the journal as values.
2. The executor carries them out, in this process or on Dask. What is sent to a worker is the job (competition, edition,
   source URL, destination URL) and a chunk's number.
3. The manifest (Parquet) and, last of all, the commit marker are written. A dataset without the marker does not exist.

The journal lies in `.progress/<key>/`. Every chunk that is done leaves its manifest rows there, so that a run that was
killed goes on after the last finished chunk.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from competitions.preparing.declaration import Content
from competitions.preparing.download import Download
from storage.datasets.checkpoint import DRAFTS, Journal, Size
from storage.datasets.execute import Copies, Task, execute, gathered
from storage.datasets.manifest import Columns, manifest_of
from storage.datasets.memory import give_back
from storage.datasets.plan import plan, unpack
from storage.writers import Destination

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
    destination = Destination(out, DRAFTS)
    job = Job(competition_id, str(folder) if folder else None, edition, dict(params or {}), raw, out, key)
    journal = Journal(destination, key)
    unmark(destination)
    done, sizes = journal.resume() if key else ({}, None)
    if sizes is None:
        make_way(destination)
        next(iter(executor.map(declare, [job])))
        done, sizes = journal.resume()
        assert sizes is not None
    counter = _Counter(done, sizes, on_progress)
    todo = [number for number in range(len(sizes)) if f"{number}" not in done]
    for number, rows in executor.map(run_chunk, todo, job):
        done[f"{number}"] = rows
        counter.add(rows)
    manifest = manifest_of(done.values())
    if before_commit:
        before_commit()
    _commit(destination, manifest, job)
    journal.clear()
    found: pd.DataFrame = manifest.to_pandas()
    return found


def declare(job: Job) -> None:
    """Run prepare.py, write what it computed, note that and what remains in the journal. Runs on a worker."""
    competition = job.load()
    destination = Destination(job.out, DRAFTS)
    download = _download(job)
    preparation = competition.declare(download, job.edition, job.params)
    checked = competition.facts.checksums.prepared
    tasks = gathered((part, path, how, f"{part}/{path}" in checked) for part, path, how in preparation.operations())
    here = [task for task in tasks if isinstance(task, Task) and task.computed]
    if "description.md" not in preparation.public.operations:
        text = competition.description.encode()
        here.append(Task("public", "description.md", Content(lambda: [text])))
    elsewhere = [task for task in tasks if isinstance(task, Copies) or not task.computed]
    journal = Journal(destination, job.key)
    journal.note("declared", execute(here, competition, download, destination))
    journal.plan(plan(elsewhere, download))
    del preparation, tasks, here, elsewhere  # tables, perhaps large ones
    give_back()


def run_chunk(number: int, job: Job) -> tuple[int, Columns]:
    """Carry out a chunk of the journal's plan and note it as done. Runs on a worker."""
    destination = Destination(job.out, DRAFTS)
    journal = Journal(destination, job.key)
    rows = execute([unpack(journal.todo(number))], job.load(), _download(job), destination)
    journal.note(f"{number}", rows)
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
        self, done: dict[str, Columns], chunks: list[Size], on_progress: Callable[[Progress], None] | None
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


def _commit(destination: Destination, manifest: pa.Table, job: Job) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(manifest, content)
    destination.write(MANIFEST, [content.getvalue()])
    marker = {
        "competition": job.competition,
        "edition": job.edition,
        "key": job.key,
        "files": len(manifest),
        "bytes": pc.sum(manifest["bytes"], min_count=0).as_py(),
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
