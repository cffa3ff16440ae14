"""Reuse of files that a dataset of the same download already has.

`with_reuse` and `with_archives`: editions mostly differ in tables, while images and recordings are the same. Such files
are linked or cloned in a local store, and copied by the server in a remote one, so that they are not read from the
download again. The same applies to archives with the same members. Archives with other members take the members that
archives of the other dataset have from these.

`difference`: a whole dataset that other code made is kept if the current code makes the same files. It is declared anew
and compared, without writing anything. A copy is equal if it has the same source and size, as the download is the same.
What prepare.py computes, derived files and archives are made once more and compared by their hashes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from competitions.preparing.declaration import Archive, ArchiveKind
from competitions.preparing.download import Download, Member
from storage.datasets.archives import MADE
from storage.datasets.commit import DESCRIPTION, MANIFEST
from storage.datasets.execute import execute
from storage.datasets.job import Job, download_of, load_competition, release_memory
from storage.datasets.manifest import Columns, Done, manifest_of, table_of
from storage.datasets.plan import Copies, Same, Task, by_pass, group_copies
from storage.writers import Destination, HashingWriter, NullSink

if TYPE_CHECKING:
    import pyarrow as pa


class Known(NamedTuple):
    """An archive that another edition declares: its name, its members, and whether it has only these."""

    name: str
    archive: Archive
    whole: bool


_RANDOM_ACCESS: tuple[ArchiveKind, ...] = ("zip", "tar")


def with_reuse(tasks: Iterable[Task | Copies | Same], manifest: pa.Table, like: str) -> Iterator[Task | Copies | Same]:
    """The tasks, in which copies of members that the dataset at the URL `like` has are taken from it.

    The dataset is committed and made of the same download, so the same member is the same file.
    """
    for task in tasks:
        if not isinstance(task, Copies):
            yield task
            continue
        numbers = _numbers(task, manifest)
        equal_rows = [row for row, number in enumerate(numbers) if number is not None]
        if equal_rows:
            yield _taken(task.at(equal_rows), manifest.take([number for number in numbers if number is not None]), like)
        if len(equal_rows) < len(numbers):
            yield task.at([row for row, number in enumerate(numbers) if number is None])


def with_archives(
    tasks: Iterable[Task | Copies | Same],
    manifest: pa.Table,
    like: str,
    archives: Callable[[], Iterable[Known]],
    download: Download,
) -> Iterator[Task | Copies | Same]:
    """The tasks, in which archives of members are taken from the dataset at the URL `like`, or made of its archives.

    The bytes are those of an archive made of the download: entries keep their order and their compression.

    Args:
        tasks: the tasks of the dataset.
        manifest: the manifest of the committed dataset, which is made of the same download.
        like: its URL.
        archives: yields the archives that its edition declares; called if the tasks have archives of members.
        download: the download of both.
    """
    known_archives: list[Known] | None = None
    for task in tasks:
        if not (isinstance(task, Task) and isinstance(task.operation, Archive) and task.operation.entries):
            yield task
            continue
        if known_archives is None:
            known_archives = list(archives())
        equal = [name for name, archive, is_whole in known_archives if is_whole and archive == task.operation]
        row = _row_of(manifest, equal[0], hashed=task.md5) if equal else None
        if row is not None:
            yield Same(like, [equal[0]], [[task.part], [task.path], *row])
        else:
            yield task._replace(operation=_from(known_archives, task.operation, like, download))


def archives_of(tasks: Iterable[Task | Copies]) -> Iterator[Known]:
    """Yield the archives among the tasks of an edition, reduced to members of the download."""
    for task in tasks:
        if isinstance(task, Task) and isinstance(how := task.operation, Archive):
            members = tuple((name, entry) for name, entry in how.entries if isinstance(entry, Member))
            yield Known(task.name, replace(how, entries=members), how.portable)


def _from(known_archives: list[Known], requested: Archive, like: str, download: Download) -> Archive:
    """The archive, in which members that archives of the dataset at `like` have are taken from these.

    Members of a sequential container are added in its order, so they are only taken from another archive if the entries
    are sorted anyway.
    """
    if requested.kind not in _RANDOM_ACCESS:
        return requested
    member_in_archive = {
        member: Member(f"{MADE}{like}/{path}", name, member.size)
        for path, archive, _ in known_archives
        if (archive.kind, archive.stored) == (requested.kind, requested.stored)
        for name, member in archive.entries
        if isinstance(member, Member)
    }
    random = {
        label: requested.kind == "tar" or download.view(label).container.random_access
        for label in {member.archive for _, member in requested.entries if isinstance(member, Member)}
    }
    entries = (
        (
            name,
            member_in_archive.get(member, member) if isinstance(member, Member) and random[member.archive] else member,
        )
        for name, member in requested.entries
    )
    return replace(requested, entries=tuple(entries))


def _row_of(manifest: pa.Table, name: str, *, hashed: bool) -> Columns | None:
    """Size, hashes and source of a file of the manifest; None if an MD5 is needed and missing."""
    import pyarrow.compute as pc

    part, _, path = name.partition("/")
    rows = manifest.filter(pc.and_(pc.equal(manifest["part"], part), pc.equal(manifest["path"], path)))
    columns = [rows[column].to_pylist() for column in Done._fields[2:]]
    return None if len(rows) != 1 or (hashed and rows["md5"][0].as_py() is None) else columns


def _numbers(copies: Copies, manifest: pa.Table) -> list[int | None]:
    """For each copy the row of the manifest with the same file and the hashes that are needed, or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.index_in(pa.array(copies.sources, pa.string()), value_set=manifest["source"])
    sizes = pc.equal(manifest["bytes"].take(numbers), pa.array(copies.sizes, pa.int64()))
    needed = pa.array(_flags(copies), pa.bool_())
    hashed = pc.or_(pc.invert(needed), pc.is_valid(manifest["md5"].take(numbers)))
    usable = pc.fill_null(pc.and_(sizes, hashed), False)
    return list(pc.if_else(usable, numbers, None).to_pylist())


def _flags(copies: Copies) -> list[bool]:
    checked = set(copies.checked)
    return [row in checked for row in range(len(copies.names))]


def _taken(copies: Copies, rows: pa.Table, like: str) -> Same:
    columns = {name: rows[name].to_pylist() for name in Done._fields}
    names = [f"{part}/{path}" for part, path in zip(columns["part"], columns["path"], strict=True)]
    columns |= {"part": copies.parts, "path": copies.paths, "source": copies.sources}
    return Same(like, names, [columns[name] for name in Done._fields])


class Discarding(Destination):
    """A destination that hashes files and keeps none."""

    def __init__(self) -> None:
        self.root, self.local, self.drafts = "", False, ""

    def make_folder(self, path: str) -> None:
        """Do nothing, because nothing is written."""

    @contextlib.contextmanager
    def open(self, name: str, md5: bool = False, size: int | None = None) -> Iterator[HashingWriter]:
        """Yield a writer that only hashes."""
        yield HashingWriter(NullSink(), md5)


def difference(job: Job, committed: str) -> str | None:
    """The first difference between the dataset that a job makes and the committed one at the URL `committed`.

    The result is None if they are equal. The function runs prepare.py, so it is called on a worker. It writes nothing.
    """
    competition, download = load_competition(job), download_of(job)
    preparation = competition.declare(download, job.edition, job.params)
    tasks = group_copies(preparation.operations())
    ignored = () if DESCRIPTION in preparation.public.operations else (f"public/{DESCRIPTION}",)
    committed_manifest = _read(committed, ignored)
    try:
        declared = manifest_of(table_of(_declared(task)) for task in tasks)
        if (listed := _different_lists(committed_manifest, declared)) is not None:
            return listed
        made_tasks = [task for task in tasks if isinstance(task, Task)]
        expected_hashes = _hashes(committed_manifest, {task.name for task in made_tasks})
        # Cheap files come first: tables, then derived files and archives.
        for tasks_of_pass in by_pass(sorted(made_tasks, key=lambda task: not task.computed)):
            rows = execute(tasks_of_pass, competition, download, Discarding())
            for part, path, size, digest in zip(*rows[:4], strict=True):
                if (size, digest) != expected_hashes[f"{part}/{path}"]:
                    return f"{part}/{path} has other content"
        return None
    finally:
        del preparation, tasks
        release_memory()


def _declared(task: Task | Copies) -> Columns:
    """Rows of a manifest as far as they are known without making the files; unknown bytes are -1."""
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


def _different_lists(committed: pa.Table, declared: pa.Table) -> str | None:
    """The first file that only one of two manifests has, or a copy from another source or of another size."""
    import pyarrow.compute as pc

    if len(committed) != len(declared) or not all(committed[name].equals(declared[name]) for name in ("part", "path")):
        declared_files, committed_files = (
            set(zip(*(t[c].to_pylist() for c in ("part", "path")), strict=True)) for t in (declared, committed)
        )
        return f"{'/'.join(min(declared_files ^ committed_files))} is in one of them only"
    copied = pc.greater_equal(declared["bytes"], 0)
    is_equal = pc.and_(
        pc.equal(committed["source"], declared["source"]),
        pc.or_(pc.invert(copied), pc.equal(committed["bytes"], declared["bytes"])),
    )
    wrong = pc.index(is_equal, False).as_py()
    if wrong < 0:
        return None
    return f"{committed['part'][wrong]}/{committed['path'][wrong]} comes from {declared['source'][wrong]}"


def _hashes(manifest: pa.Table, names: set[str]) -> dict[str, tuple[int, str]]:
    """Size and hash of each of the files with these names."""
    columns = (manifest[name].to_pylist() for name in ("part", "path", "bytes", "hash"))
    return {
        name: (size, digest)
        for part, path, size, digest in zip(*columns, strict=True)
        if (name := f"{part}/{path}") in names
    }
