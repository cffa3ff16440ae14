"""Write the files of a declaration: plan, run chunks on workers, write manifest and commit marker.

The steps of preparing one competition into a directory (a local path or fsspec URL):

1. `declare` runs prepare.py on one worker, writes what prepare.py computed (tables and other content), divides the rest
   (copies, archives of members, derived files) into chunks of bounded size, and saves them in the checkpoint. If
   another edition is to be prepared of the same download, it is declared by the same call (`storage.datasets.drafts`).
2. The executor runs the chunks, in this process or on Dask. A worker receives the job (competition, edition,
   source URL, destination URL) and the number of a chunk.
3. The manifest (Parquet) and finally the commit marker are written. A dataset without the marker is treated as missing.

The directory of a job with a key belongs to that key alone. Once it is committed it is never changed: a job that finds
its marker returns the manifest. Until then nothing in it is removed either, because equal keys mean equal bytes, and
agents may still read a dataset whose marker was removed because a file was damaged. The files are replaced one by one.

The checkpoint (`.progress/<key>/`) has the manifest rows of every finished chunk, so that a killed run can be resumed.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from common.locations import local_path
from competitions.preparing.declaration import LeftOut
from competitions.preparing.download import Download
from storage.datasets.checkpoint import DRAFTS, FOLDER, Checkpoint, Size
from storage.datasets.drafts import Draft, load_draft, save_draft
from storage.datasets.execute import Copies, Same, Task, execute, group_copies
from storage.datasets.job import Job, Preparable, load_competition
from storage.datasets.manifest import Columns, columns_of, manifest_of, table_of
from storage.datasets.memory import passing_over_what_exists, release_memory
from storage.datasets.plan import Chunk, plan, unpack
from storage.datasets.reuse import Known, archives_of, with_archives, with_reuse
from storage.datasets.storable import require_storable
from storage.datasets.traces import remove_traces, written_in_order
from storage.writers import Destination

if TYPE_CHECKING:
    import pyarrow as pa

    from competitions.editions import Edition

MANIFEST = "manifest.parquet"
MARKER = "commit.json"
ROWS = 1 << 17
"""Rows of the manifest that are decoded at a time."""
DESCRIPTION = "description.md"
"""The text for agents, beside the public files. It is not part of the dataset: a run gets the text of its day."""


class Progress(NamedTuple):
    """Number of files and bytes of a dataset that have been written, and the totals."""

    files: int
    files_total: int
    bytes: int
    bytes_total: int


class Executor(Protocol):
    """Maps a function over values, in any order, and yields results as they complete."""

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """`function(value, *fixed)` for each value. `heavy` means that a call may need several GiB of memory."""
        ...


class Serial:
    """An executor that runs everything in this process, in order."""

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        """`function(value, *fixed)` for each value. `heavy` means that a call may need several GiB of memory."""
        for value in values:
            yield function(value, *fixed)


def materialise(
    job: Job,
    *,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    before_commit: Callable[[], None] | None = None,
    ahead: Job | None = None,
) -> pa.Table:
    """Prepare a dataset and return its manifest, that of the committed dataset if there is one with the job's key.

    Args:
        job: the dataset to prepare, and its destination.
        executor: runs the chunks; in this process by default.
        on_progress: called at the start and after each chunk.
        before_commit: can raise to prevent the commit; see `storage.lease.Lease.require_held`.
        ahead: a job for another edition with the same download, to be prepared like this dataset afterwards. It is
            declared together with this one.

    Raises:
        DownloadError: the download is damaged or incomplete.
    """
    executor = executor or Serial()
    destination = Destination(job.out, DRAFTS)
    checkpoint = Checkpoint(destination, job.checkpoint)
    if job.key:
        if is_complete(destination, job):
            return read_manifest_of(destination)
    else:
        remove_commit_marker(destination)
        clear_destination(destination)
    done, sizes = checkpoint.load() if job.key else ({}, None)
    if sizes is None:
        next(iter(executor.map(declare, [job], ahead, heavy=True)))
        done, sizes = checkpoint.load()
        assert sizes is not None
    counter = _Counter(done, sizes, on_progress)
    todo = [number for number in range(len(sizes)) if f"{number}" not in done]
    for number, rows in executor.map(run_chunk, todo, job):
        done[f"{number}"] = table_of(rows)
        counter.add(done[f"{number}"])
    manifest = manifest_of(done.values())
    if before_commit:
        before_commit()
    commit(destination, manifest, job, checkpoint.load_left_out())
    checkpoint.clear()
    return manifest


def materialise_here(job: Job) -> pa.Table:
    """`materialise` for a job without a key, by this process and helpers on this machine, without a checkpoint.

    Helpers copy files and build archives while this process formats the tables.

    Raises:
        DownloadError: the download is damaged or incomplete.
    """
    from storage.datasets.helpers import Helpers, helpers_for

    destination = Destination(job.out, DRAFTS)
    remove_commit_marker(destination)
    clear_destination(destination)
    download = download_of(job)
    count = helpers_for(job.raw, job.out, download)
    with passing_over_what_exists(), Helpers(job.raw, job.out, count) as helpers:
        competition = load_competition(job)
        declared = _declared(job, competition, download, destination)

        def execute_here(chunk: Chunk) -> Columns:
            return execute([unpack(chunk.task)], competition, download, destination)

        elsewhere = written_in_order(declared.elsewhere) if destination.local else declared.elsewhere
        planned = plan(elsewhere, download, count + 1 if count else 0)
        with helpers.executing(planned, download, execute_here) as finish:
            rows = execute(declared.here, competition, download, destination)
            declared.write_description(destination)
            left_out = declared.counts()
            del declared  # frees tables, which may be large
            manifest = manifest_of(map(table_of, [rows, *finish()]))
    release_memory()
    commit(destination, manifest, job, left_out)
    Checkpoint(destination, job.checkpoint).clear()
    return manifest


def declare(job: Job, ahead: Job | None = None) -> None:
    """Run prepare.py on a worker, write what it computed, and save the plan for the rest.

    The job `ahead` gets a draft: what its prepare.py reads is what was read before, see `Download.remembering`. Only
    one of the two declarations is in memory at a time.
    """
    competition, destination, download = load_competition(job), Destination(job.out, DRAFTS), download_of(job)
    if (draft := load_draft(job)) is not None:
        _save(job, draft, download, destination)
        return
    if ahead is None:
        _save(job, _written(job, competition, download, destination), download, destination)
        return
    with download.remembering() as memo:
        archives: list[Known] = []
        draft = _written(job, competition, download, destination, archives)
        _save(job, draft, download, destination)
        del draft
        memo.begin_last()
        # Whatever is wrong with the other edition is found again, and reported, when it is prepared.
        with contextlib.suppress(Exception):
            other = Destination(ahead.out, DRAFTS)
            made = _written(ahead, competition, download, other)
            other.sync()  # before the draft says that they are there
            save_draft(ahead, made._replace(archives=archives))
    release_memory()


def _written(
    job: Job, competition: Preparable, download: Download, destination: Destination, archives: list[Known] | None = None
) -> Draft:
    """Run prepare.py, and write what it computed. The archives that it declares are added to `archives`."""
    declared = _declared(job, competition, download, destination)
    rows = execute(declared.here, competition, download, destination)
    declared.write_description(destination)
    draft = Draft(rows, declared.elsewhere, None, declared.counts())
    if archives is not None:
        archives += archives_of([*declared.here, *declared.elsewhere])
    del declared  # frees tables, which may be large
    release_memory()
    return draft


def _save(job: Job, draft: Draft, download: Download, destination: Destination) -> None:
    """Save the plan for what is not written yet."""
    checkpoint = Checkpoint(destination, job.checkpoint)
    checkpoint.save_left_out(draft.left_out)
    destination.sync()
    checkpoint.save_rows("declared", draft.rows)
    checkpoint.save_plan(plan(_taken(job, draft, download, destination), download))
    release_memory()


class _Declared(NamedTuple):
    """What prepare.py declares: tasks with content that it computed, for this process, and those for any process."""

    here: list[Task]
    elsewhere: list[Task | Copies]
    description: bytes | None
    left_out: list[LeftOut]

    def counts(self) -> list[dict[str, Any]]:
        """What was left out of train, for the commit marker; complete once the tasks for this process are executed."""
        return [asdict(each) for each in self.left_out]

    def write_description(self, destination: Destination) -> None:
        """Write the text for agents, unless it is one of the prepared files."""
        if self.description is not None:
            destination.write(f"public/{DESCRIPTION}", [self.description])


def _declared(job: Job, competition: Preparable, download: Download, destination: Destination) -> _Declared:
    preparation = competition.declare(download, job.edition, job.params)
    require_storable(preparation, destination)
    checked = competition.facts.checksums.prepared
    tasks = group_copies((part, path, how, f"{part}/{path}" in checked) for part, path, how in preparation.operations())
    own = DESCRIPTION in preparation.public.operations
    return _Declared(
        [task for task in tasks if isinstance(task, Task) and task.computed],
        [task for task in tasks if isinstance(task, Copies) or not task.computed],
        None if own else competition.describe(job.edition).encode(),
        preparation.left_out,
    )


def _taken(job: Job, draft: Draft, download: Download, destination: Destination) -> Iterable[Task | Copies | Same]:
    """The tasks for any process: what the dataset that this one is to be like has is taken from it."""
    tasks: Iterable[Task | Copies | Same] = draft.elsewhere
    if job.like:
        manifest = read_manifest_of(Destination(job.like))
        tasks = with_reuse(tasks, manifest, job.like)
        if job.like_edition:
            archives = (
                partial(_archives_of_other, job, job.like_edition, download)
                if draft.archives is None
                else draft.archives.copy
            )
            tasks = with_archives(tasks, manifest, job.like, archives, download)
    return written_in_order(tasks) if destination.local else tasks


def _archives_of_other(job: Job, edition: Edition, download: Download) -> Iterable[Known]:
    preparation = load_competition(job).declare(download, edition, job.params)
    return archives_of([Task(*each) for each in preparation.operations()])


def run_chunk(number: int, job: Job) -> tuple[int, Columns]:
    """Execute a chunk of the plan on a worker and save its rows.

    Nothing is written into a dataset that is complete: another process has finished what a killed one began, while the
    worker of the killed one went on.
    """
    destination = Destination(job.out, DRAFTS)
    if job.key and is_complete(destination, job):
        return number, columns_of([])
    checkpoint = Checkpoint(destination, job.checkpoint)
    task = unpack(checkpoint.load_task(number))
    rows = execute([task], load_competition(job), download_of(job), destination)
    destination.sync()  # on the host that wrote it, before the note says that it is there
    checkpoint.save_rows(f"{number}", rows)
    return number, rows


def download_of(job: Job) -> Download:
    """The job's download."""
    identity: tuple[int, ...] = ()
    if path := local_path(job.raw):
        with contextlib.suppress(OSError):
            stat = path.stat()
            identity = (stat.st_ino, stat.st_size, stat.st_mtime_ns)  # a replaced file is another download
    # The editions of one download share it, with the archives in it that were decompressed.
    return _open_download(job.raw, job.recipe.download if job.recipe else job.key, identity)


# Global, because workers keep no other state between chunks, and reading a zip's directory is slow.
@lru_cache(maxsize=1)
def _open_download(raw: str, _hash: str, _identity: tuple[int, ...]) -> Download:
    return Download.open(raw)


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
        self._bytes += _bytes_of(rows)

    def _report(self) -> None:
        if self._on_progress:
            self._on_progress(self._total._replace(files=self._files, bytes=self._bytes))


def commit(destination: Destination, manifest: pa.Table, job: Job, left_out: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write the manifest, and then the commit marker, of a dataset whose files are all written.

    The marker states what was left out of train, as the fields of `LeftOut`.

    A dataset with a key is in a store, where it has to survive a loss of power: its files reach the disk before the
    marker does. A plain directory survives the end of this process.
    """
    import pyarrow.parquet as pq

    remove_traces(destination, manifest)
    with destination.open(MANIFEST) as file:
        pq.write_table(manifest, file, row_group_size=ROWS)
    if job.key:
        destination.sync()
    marker = {
        "competition": job.competition_id,
        "edition": job.edition,
        "key": job.key,
        "files": len(manifest),
        "bytes": _bytes_of(manifest),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **({"recipe": job.recipe.to_json()} if job.recipe else {}),
        **({"left_out": list(left_out)} if left_out else {}),
    }
    destination.write(MARKER, [json.dumps(marker).encode()])
    if job.key:
        destination.sync()  # what the dataset was made of may be removed after this


def _bytes_of(rows: pa.Table) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(rows["bytes"], min_count=0).as_py())


def is_complete(destination: Destination, job: Job) -> bool:
    """Whether the destination has the committed dataset of the job. Raises `ValueError` if it has another one."""
    try:
        marker = json.loads(destination.fs.cat_file(destination.path(MARKER)))
    except FileNotFoundError:
        return False
    if marker["key"] != job.key:
        raise ValueError(f"{destination.root} has the dataset {marker['key']}, not {job.key}")
    return True


def read_manifest_of(destination: Destination) -> pa.Table:
    """The manifest of a committed dataset."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(destination.fs.cat_file(destination.path(MANIFEST))))


def clear_destination(destination: Destination) -> None:
    """Remove the files of an earlier dataset, so that none of them become part of the new one."""
    for name in (FOLDER, "public", "private"):
        with contextlib.suppress(FileNotFoundError):
            destination.fs.rm(destination.path(name), recursive=True)


def remove_commit_marker(destination: Destination) -> None:
    """Remove the commit marker. The dataset is then treated as missing until it is committed again."""
    with contextlib.suppress(FileNotFoundError):
        destination.fs.rm_file(destination.path(MARKER))
