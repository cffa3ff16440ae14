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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from competitions import registry
from competitions.competition import Competition
from competitions.download import Download
from competitions.editions import Edition
from competitions.preparation import Archive, Content, Copy, Derived
from storage.execute import Done, Task, execute
from storage.writers import Destination

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.parquet"
MARKER = "commit.json"
_CHUNK_BYTES = 64 << 20
_CHUNK_FILES = 2_000
_FILE_COST = 16 << 10  # bytes that opening and creating a file is worth: keeps chunks of tiny files small


class Job(NamedTuple):
    """Which dataset is being prepared; all a worker needs beside the package."""

    competition: str
    folder: str | None
    edition: Edition
    params: dict[str, Any]
    raw: str
    out: str

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
) -> pd.DataFrame:
    """Prepare a competition from the download at `raw` into `out`; returns the manifest.

    `raw` and `out` are local paths or fsspec URLs. `key` identifies the content (see `storage.keys`): progress of an
    interrupted run with the same key is continued. Raises `DownloadError` for a damaged or incomplete download.
    """
    executor = executor or Serial()
    destination = Destination(out)
    job = Job(competition_id, str(folder) if folder else None, edition, dict(params or {}), raw, out)
    progress = f".progress/{key or 'once'}"
    unmark(destination)
    done, chunks = _resume(destination, progress) if key else ({}, None)
    if chunks is None:
        _remove(destination, ".progress")
        done = {}
        plan = next(iter(executor.map(declare, [job])))
        _note(destination, progress, "declared", plan.done)
        done["declared"] = plan.done
        chunks = cut(plan.tasks)
        _write_json(destination, f"{progress}/plan.json", [[_encode(task) for task in chunk] for chunk in chunks])
    todo = [(number, chunk) for number, chunk in enumerate(chunks) if f"{number}" not in done]
    total = Progress(0, sum(map(len, chunks)) + len(done["declared"]), 0, sum(_size(t) for c in chunks for t in c))
    _report(on_progress, done, total)
    for number, rows in executor.map(run_chunk, todo, job, progress):
        done[f"{number}"] = rows
        _report(on_progress, done, total)
    manifest = _manifest(row for rows in done.values() for row in rows)
    _commit(destination, manifest, job, key)
    _remove(destination, ".progress")
    return manifest


class Plan(NamedTuple):
    """What is left after declaring: files already written, and tasks for workers."""

    done: list[Done]
    tasks: list[Task]


def declare(job: Job) -> Plan:
    """Run prepare.py, write what it computed, return what remains. Runs on a worker."""
    competition = job.load()
    download = Download.open(job.raw)
    destination = Destination(job.out)
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
    return Plan(execute(here, competition, download, destination), elsewhere)


def run_chunk(numbered: tuple[int, list[Task]], job: Job, progress: str) -> tuple[int, list[Done]]:
    """Carry out one chunk and note it as done. Runs on a worker."""
    number, tasks = numbered
    destination = Destination(job.out)
    rows = execute(tasks, job.load(), _download(job.raw), destination)
    _note(destination, progress, f"{number}", rows)
    return number, rows


_open: dict[str, Download] = {}


def _download(raw: str) -> Download:
    # One view a worker: an archive's directory is read once, not once a chunk.
    if raw not in _open:
        _open.clear()
        _open[raw] = Download.open(raw)
    return _open[raw]


def cut(tasks: Iterable[Task]) -> list[list[Task]]:
    """Chunks of bounded bytes and number of files; members of one archive stay together and in order."""
    chunks: list[list[Task]] = []
    current: list[Task] = []
    size = 0
    archive: str | None = None
    for task in sorted(
        tasks, key=lambda task: task.operation.member.archive if isinstance(task.operation, Copy) else ""
    ):
        source = task.operation.member.archive if isinstance(task.operation, Copy) else None
        whole = source is not None and source.endswith((".7z", ".gz", ".tgz"))
        cost = _size(task) + _FILE_COST
        full = size + cost > _CHUNK_BYTES or len(current) >= _CHUNK_FILES or not isinstance(task.operation, Copy)
        if current and (source != archive or (full and not whole)):
            chunks.append(current)
            current, size = [], 0
        current.append(task)
        size += cost
        archive = source
    return [*chunks, current] if current else chunks


def _size(task: Task) -> int:
    match task.operation:
        case Copy(member):
            return member.size
        case Archive(entries=entries):
            return sum(getattr(entry, "size", 0) for _, entry in entries)
        case _:
            return 0


def _report(on_progress: Callable[[Progress], None] | None, done: dict[str, list[Done]], total: Progress) -> None:
    if on_progress:
        rows = [row for name, rows in done.items() if name != "declared" for row in rows]
        files = len(rows) + len(done["declared"])
        on_progress(total._replace(files=files, bytes=sum(row.bytes for row in rows)))


def _manifest(rows: Iterable[Done]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(sorted(rows), columns=list(Done._fields))


def _commit(destination: Destination, manifest: pd.DataFrame, job: Job, key: str) -> None:
    destination.write(MANIFEST, [manifest.to_parquet(index=False)])
    marker = {
        "competition": job.competition,
        "edition": job.edition,
        "key": key,
        "files": len(manifest),
        "bytes": int(manifest["bytes"].sum()),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write_json(destination, MARKER, marker)


def unmark(destination: Destination) -> None:
    """Remove the commit marker: from here on the dataset does not exist, until it is complete again."""
    with contextlib.suppress(FileNotFoundError):
        destination.fs.rm_file(destination.path(MARKER))


def _write_json(destination: Destination, name: str, value: Any) -> None:
    destination.write(name, [json.dumps(value).encode()])


def _note(destination: Destination, progress: str, name: str, rows: list[Done]) -> None:
    _write_json(destination, f"{progress}/done-{name}.json", rows)


def _resume(destination: Destination, progress: str) -> tuple[dict[str, list[Done]], list[list[Task]] | None]:
    """(finished chunks by name, all chunks) of an interrupted run, ({}, None) if there is none."""
    fs, folder = destination.fs, destination.path(progress)
    fs.invalidate_cache()
    if not fs.exists(f"{folder}/plan.json"):
        return {}, None
    chunks = [[_decode(task) for task in chunk] for chunk in json.loads(fs.cat_file(f"{folder}/plan.json"))]
    found = {}
    for path in fs.glob(f"{folder}/done-*.json"):
        name = path.rsplit("/done-", 1)[1].removesuffix(".json")
        found[name] = [Done(*row) for row in json.loads(fs.cat_file(path))]
    return found, chunks


def _remove(destination: Destination, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        destination.fs.rm(destination.path(name), recursive=True)


def _encode(task: Task) -> list[Any]:
    match task.operation:
        case Copy(member):
            how: list[Any] = ["copy", *member]
        case Archive(kind, entries, stored, folders):
            how = ["archive", kind, [[name, *entry] for name, entry in entries], stored, folders]  # type: ignore[misc]
        case Derived(function, arguments):
            how = ["derived", function, arguments]
        case _:
            raise TypeError(f"{task.name}: computed content does not travel")
    return [task.part, task.path, task.md5, how]


def _decode(encoded: list[Any]) -> Task:
    from competitions.download import Member

    part, path, md5, (kind, *rest) = encoded
    match kind:
        case "copy":
            return Task(part, path, Copy(Member(*rest)), md5)
        case "archive":
            entries = tuple((name, Member(*member)) for name, *member in rest[1])
            return Task(part, path, Archive(rest[0], entries, rest[2], tuple(rest[3])), md5)
        case _:
            return Task(part, path, Derived(rest[0], tuple(rest[1])), md5)
