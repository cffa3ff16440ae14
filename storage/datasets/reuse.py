"""Files that a new dataset has in common with one of the same download that the store has already.

Editions mostly differ in tables, while images and recordings are the same. Such files are linked or cloned in a local
store, and copied by the server in a remote one, so that they are not read from the download again. The same goes for
archives with the same members. Archives with other members take from those of the other dataset what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from competitions.preparing.declaration import Archive, ArchiveKind
from competitions.preparing.download import Download, Member
from storage.datasets.archives import MADE
from storage.datasets.manifest import Columns, Done
from storage.datasets.work import Copies, Same, Task

if TYPE_CHECKING:
    import pyarrow as pa


class Known(NamedTuple):
    """An archive that another edition declares: its name, its members, and whether it has nothing else."""

    name: str
    archive: Archive
    whole: bool


_RANDOM_ACCESS: tuple[ArchiveKind, ...] = ("zip", "tar")


def with_reuse(tasks: Iterable[Task | Copies | Same], manifest: pa.Table, like: str) -> Iterator[Task | Copies | Same]:
    """The tasks, in which copies of members that the dataset at the URL `like` has are taken from it.

    The dataset is committed and made of the same download: the same member of it is the same file.
    """
    for task in tasks:
        if not isinstance(task, Copies):
            yield task
            continue
        found = _numbers(task, manifest)
        same = [row for row, number in enumerate(found) if number is not None]
        if same:
            yield _taken(task.at(same), manifest.take([number for number in found if number is not None]), like)
        if len(same) < len(found):
            yield task.at([row for row, number in enumerate(found) if number is None])


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
        tasks: what is to be made.
        manifest: the manifest of the committed dataset, which is made of the same download.
        like: its URL.
        archives: those that its edition declares; called if there are archives of members among the tasks.
        download: the download of both.
    """
    known: list[Known] | None = None
    for task in tasks:
        if not (isinstance(task, Task) and isinstance(task.operation, Archive) and task.operation.entries):
            yield task
            continue
        if known is None:
            known = list(archives())
        equal = [name for name, archive, whole in known if whole and archive == task.operation]
        row = _row_of(manifest, equal[0], hashed=task.md5) if equal else None
        if row is not None:
            yield Same(like, [equal[0]], [[task.part], [task.path], *row])
        else:
            yield task._replace(operation=_from(known, task.operation, like, download))


def archives_of(tasks: Iterable[Task | Copies]) -> Iterator[Known]:
    """Yield the archives among the tasks of an edition, reduced to members of the download."""
    for task in tasks:
        if isinstance(task, Task) and isinstance(how := task.operation, Archive):
            members = tuple((name, entry) for name, entry in how.entries if isinstance(entry, Member))
            yield Known(task.name, replace(how, entries=members), how.portable)


def _from(known: list[Known], wanted: Archive, like: str, download: Download) -> Archive:
    """The archive, in which members that archives of the dataset at `like` have are taken from these.

    Members of a sequential container come in the order that they have in it, so they are only taken from elsewhere if
    entries are sorted anyway.
    """
    if wanted.kind not in _RANDOM_ACCESS:
        return wanted
    made = {
        member: Member(f"{MADE}{like}/{path}", name, member.size)
        for path, archive, _ in known
        if (archive.kind, archive.stored) == (wanted.kind, wanted.stored)
        for name, member in archive.entries
        if isinstance(member, Member)
    }
    random = {
        label: wanted.kind == "tar" or download.view(label).container.random_access
        for label in {member.archive for _, member in wanted.entries if isinstance(member, Member)}
    }
    entries = (
        (name, made.get(member, member) if isinstance(member, Member) and random[member.archive] else member)
        for name, member in wanted.entries
    )
    return replace(wanted, entries=tuple(entries))


def _row_of(manifest: pa.Table, name: str, *, hashed: bool) -> Columns | None:
    """Size, hashes and source of a file of the manifest; None without an MD5 that is needed."""
    import pyarrow.compute as pc

    part, _, path = name.partition("/")
    rows = manifest.filter(pc.and_(pc.equal(manifest["part"], part), pc.equal(manifest["path"], path)))
    found = [rows[column].to_pylist() for column in Done._fields[2:]]
    return None if len(rows) != 1 or (hashed and rows["md5"][0].as_py() is None) else found


def _numbers(copies: Copies, manifest: pa.Table) -> list[int | None]:
    """For each copy the row of the manifest with the same file, None if there is none with the hashes that it needs."""
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
