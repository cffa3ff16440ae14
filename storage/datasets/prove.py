"""Prove that other code makes the same dataset: declare it anew and compare, without writing anything.

The download is the same, so a copy is equal if it has the same source and size. What prepare.py computes, derived files
and archives are made once more and compared by their hashes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage.datasets.commit import DESCRIPTION, MANIFEST
from storage.datasets.execute import execute
from storage.datasets.job import Job, download_of, load_competition
from storage.datasets.manifest import Columns, manifest_of, table_of
from storage.datasets.memory import release_memory
from storage.datasets.work import Copies, Task, by_pass, group_copies
from storage.writers import Destination, HashingWriter, NullSink

if TYPE_CHECKING:
    import pyarrow as pa


class Discarding(Destination):
    """A destination that hashes files and keeps none."""

    def __init__(self) -> None:
        self.root, self.local, self.drafts = "", False, ""

    def make_folder(self, path: str) -> None:
        """Nothing is written."""

    @contextlib.contextmanager
    def open(self, name: str, md5: bool = False, size: int | None = None) -> Iterator[HashingWriter]:
        """Yield a writer that only hashes."""
        yield HashingWriter(NullSink(), md5)


def difference(job: Job, committed: str) -> str | None:
    """The first difference between the dataset that a job makes and the committed one at the URL `committed`.

    None if they are equal. Runs prepare.py, so it is called on a worker. Nothing is written.
    """
    competition, download = load_competition(job), download_of(job)
    preparation = competition.declare(download, job.edition, job.params)
    tasks = group_copies(preparation.operations())
    ignored = () if DESCRIPTION in preparation.public.operations else (f"public/{DESCRIPTION}",)
    known = _read(committed, ignored)
    try:
        declared = manifest_of(table_of(_declared(task)) for task in tasks)
        if (found := _different_lists(known, declared)) is not None:
            return found
        made = [task for task in tasks if isinstance(task, Task)]
        wanted = _hashes(known, {task.name for task in made})
        # What is cheap to make comes first: tables, then derived files and archives.
        for some in by_pass(sorted(made, key=lambda task: not task.computed)):
            rows = execute(some, competition, download, Discarding())
            for part, path, size, digest in zip(*rows[:4], strict=True):
                if (size, digest) != wanted[f"{part}/{path}"]:
                    return f"{part}/{path} has other content"
        return None
    finally:
        del preparation, tasks
        release_memory()


def _declared(task: Task | Copies) -> Columns:
    """Rows of a manifest as far as they are known without making the files: bytes are -1 where they are not."""
    if isinstance(task, Task):
        return [[task.part], [task.path], [-1], [""], [None], [task.source]]
    count = len(task.names)
    return [task.parts, task.paths, task.sizes, [""] * count, [None] * count, task.sources]


def _read(committed: str, ignored: tuple[str, ...]) -> pa.Table:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    destination = Destination(committed)
    table = pq.read_table(io.BytesIO(destination.fs.cat_file(destination.path(MANIFEST))))
    if ignored:
        import pyarrow as pa

        names = pc.binary_join_element_wise(table["part"], table["path"], "/")
        table = table.filter(pc.invert(pc.is_in(names, pa.array(ignored, pa.string()))))
    return table


def _different_lists(known: pa.Table, declared: pa.Table) -> str | None:
    """The first file that only one of two manifests has, or a copy from another source or of another size."""
    import pyarrow.compute as pc

    if len(known) != len(declared) or not all(known[name].equals(declared[name]) for name in ("part", "path")):
        here, there = (set(zip(*(t[c].to_pylist() for c in ("part", "path")), strict=True)) for t in (declared, known))
        return f"{'/'.join(min(here ^ there))} is in one of them only"
    copied = pc.greater_equal(declared["bytes"], 0)
    same = pc.and_(
        pc.equal(known["source"], declared["source"]),
        pc.or_(pc.invert(copied), pc.equal(known["bytes"], declared["bytes"])),
    )
    wrong = pc.index(same, False).as_py()
    if wrong < 0:
        return None
    return f"{known['part'][wrong]}/{known['path'][wrong]} comes from {declared['source'][wrong]}"


def _hashes(known: pa.Table, names: set[str]) -> dict[str, tuple[int, str]]:
    """Size and hash of each of the files with these names."""
    columns = (known[name].to_pylist() for name in ("part", "path", "bytes", "hash"))
    return {
        name: (size, digest)
        for part, path, size, digest in zip(*columns, strict=True)
        if (name := f"{part}/{path}") in names
    }
