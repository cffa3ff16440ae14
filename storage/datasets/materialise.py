"""Write the files of a declaration: plan, run chunks on workers, write manifest and commit marker.

The steps of preparing one competition into a directory (a local path or fsspec URL):

1. `declare` runs prepare.py on one worker, writes what prepare.py computed (tables and other content), divides the rest
   (copies, archives of members, derived files) into chunks of bounded size, and saves them in the journal.
2. The executor runs the chunks: in this process, in several of this machine, or on Dask. A worker receives the job
   (competition, edition, source URL, destination URL) and the number of a chunk.
3. The manifest (Parquet) and finally the commit marker are written. A dataset without the marker is treated as missing.

The directory of a job with a key belongs to that key alone. Once it is committed it is never changed: a job that finds
its marker returns the manifest. Until then nothing in it is removed either, because equal keys mean equal bytes, and
agents may still read a dataset whose marker was removed because a file was damaged. The files are replaced one by one.

The journal (`.progress/<key>/`) has the manifest rows of every finished chunk, so that a killed run can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from storage.datasets.commit import (
    bytes_of,
    clear_destination,
    commit,
    is_complete,
    read_manifest_of,
    remove_commit_marker,
)
from storage.datasets.declare import declare
from storage.datasets.execute import execute
from storage.datasets.executors import Executor, Serial
from storage.datasets.job import Job, download_of, load_competition
from storage.datasets.journal import DRAFTS, Journal, Size
from storage.datasets.manifest import Columns, columns_of, manifest_of, table_of
from storage.datasets.plan import unpack
from storage.writers import Destination

if TYPE_CHECKING:
    import pyarrow as pa


class Progress(NamedTuple):
    """Number of files and bytes of a dataset that have been written, and the totals."""

    files: int
    files_total: int
    bytes: int
    bytes_total: int


def materialise(
    job: Job,
    *,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    before_commit: Callable[[], None] | None = None,
) -> pa.Table:
    """Prepare a dataset and return its manifest, that of the committed dataset if there is one with the job's key.

    Args:
        job: the dataset to prepare, and its destination.
        executor: runs the chunks; in this process by default.
        on_progress: called at the start and after each chunk.
        before_commit: can raise to prevent the commit; see `storage.lease.Lease.require_held`.

    Raises:
        DownloadError: the download is damaged or incomplete.
    """
    executor = executor or Serial()
    destination = Destination(job.out, DRAFTS)
    journal = Journal(destination, job.journal)
    if job.key:
        if is_complete(destination, job):
            return read_manifest_of(destination)
    else:
        remove_commit_marker(destination)
        clear_destination(destination)
    done, sizes = journal.load() if job.key else ({}, None)
    if sizes is None:
        next(iter(executor.map(declare, [job], heavy=True)))
        done, sizes = journal.load()
        assert sizes is not None
    counter = _Counter(done, sizes, on_progress)
    pending = [number for number in range(len(sizes)) if f"{number}" not in done]
    for number, rows in executor.map(run_chunk, pending, job):
        done[f"{number}"] = table_of(rows)
        counter.add(done[f"{number}"])
    manifest = manifest_of(done.values())
    if before_commit:
        before_commit()
    commit(destination, manifest, job, journal.load_left_out())
    journal.clear()
    return manifest


def run_chunk(number: int, job: Job) -> tuple[int, Columns]:
    """Execute a chunk of the plan on a worker and save its rows.

    Nothing is written into a complete dataset: another process may have finished the work of a killed process, whose
    worker continued.
    """
    destination = Destination(job.out, DRAFTS)
    if job.key and is_complete(destination, job):
        return number, columns_of([])
    journal = Journal(destination, job.journal)
    task = unpack(journal.load_task(number))
    rows = execute([task], load_competition(job), download_of(job), destination)
    journal.save_rows(f"{number}", rows)
    return number, rows


class _Counter:
    """Counts finished files and bytes and reports them."""

    def __init__(
        self, done: dict[str, pa.Table], chunks: list[Size], on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._on_progress = on_progress
        # The bytes of these files are not counted, because they are not known beforehand.
        self._files = len(done["declared"])
        self._bytes = 0
        self._total = Progress(0, self._files + sum(chunk.files for chunk in chunks), 0, sum(c.bytes for c in chunks))
        for name, rows in done.items():
            if name != "declared":
                self._count(rows)
        self._report()

    def add(self, rows: pa.Table) -> None:
        """Count a finished chunk."""
        self._count(rows)
        self._report()

    def _count(self, rows: pa.Table) -> None:
        self._files += len(rows)
        self._bytes += bytes_of(rows)

    def _report(self) -> None:
        if self._on_progress:
            self._on_progress(self._total._replace(files=self._files, bytes=self._bytes))
